"""ZeRO-3: the order of modules depends on the batch, on all ranks alike.

    deepspeed --num_gpus 2 examples/changing_order.py --mistake     runs, slowly: DeepSpeed cannot prefetch
    deepspeed --num_gpus 2 examples/changing_order.py               the repaired program

Two adapters are run in an order that a property of the batch decides.  No rank waits for another, since all decide
alike, but DeepSpeed loses the order of modules that it has recorded, again and again.
The repair: one order, and weights that decide.
"""
import deepspeed
import torch
from torch import nn

from small_model import WIDTH, Block, Model, arguments, batch, say, this_rank, zero_config


class AdaptedModel(Model):
    mistake = False
    long_first = False             # a property of the whole batch, known to all ranks

    def __init__(self):
        super().__init__()
        self.for_long, self.for_short = Block(), Block()
        self.mix = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, target):
        x = self.embed(x)
        for number, block in enumerate(self.blocks):
            x = block(x)
            if number == 3:
                x = self.adapt(x)
        return (self.head(self.mix(x)) - target).float().pow(2).mean()

    def adapt(self, x):
        if self.mistake and self.long_first:
            x = self.for_long(x)
            return self.for_short(x)
        weight = 1.0 if self.mistake else 0.5 + 0.5 * self.long_first
        x = self.for_short(x)
        return x + weight * (self.for_long(x) - x)


args = arguments(mistake="the batch decides which adapter comes first")
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
with deepspeed.zero.Init(config_dict_or_path=zero_config(3)):
    model = AdaptedModel()
model.mistake = args.mistake
engine, _, _, _ = deepspeed.initialize(model=model, config=zero_config(3))
for step in range(args.steps):
    model.long_first = step % 7 in (3, 5)
    loss = engine(*batch(step, rank, device))
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
torch.distributed.destroy_process_group()
