"""ZeRO-3: one rank uses a weight that belongs to another module, and nobody registered it.

    deepspeed --num_gpus 2 examples/borrowed_weight.py --mistake    stops in step 4
    deepspeed --num_gpus 2 examples/borrowed_weight.py              the repaired program

The loss of some batches uses the embedding's weight directly.  A weight that is used outside its module is gathered
when it is touched: only on the ranks that touch it.
The repair: register_external_parameter, which gathers the weight with the module that uses it, on all ranks.
"""
import deepspeed
import torch
from torch import nn

from small_model import Model, arguments, batch, say, this_rank, zero_config


class BorrowingModel(Model):
    borrows = False

    def forward(self, x, target):
        y = self.embed(x)
        for block in self.blocks:
            y = block(y)
        y = self.head(y)
        if self.borrows:
            y = y + 0.1 * nn.functional.linear(y, self.embed.weight)
        return (y - target).float().pow(2).mean()


args = arguments(mistake="the weight is not registered; rank 1 uses it from step 4 on")
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
config = zero_config(3)
# Nothing stays gathered and nothing is gathered early, as in a model that is large beside these limits.
config["zero_optimization"].update(stage3_max_reuse_distance=0, stage3_prefetch_bucket_size=0)
with deepspeed.zero.Init(config_dict_or_path=config):
    model = BorrowingModel()
if not args.mistake:
    deepspeed.zero.register_external_parameter(model, model.embed.weight)
engine, _, _, _ = deepspeed.initialize(model=model, config=config)
for step in range(args.steps):
    model.borrows = rank == 1 and step >= 4
    loss = engine(*batch(step, rank, device))
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
torch.distributed.destroy_process_group()
