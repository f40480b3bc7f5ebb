"""ZeRO-3: the number of blocks that are run changes, on all ranks alike.

    deepspeed --num_gpus 2 examples/changing_depth.py --mistake     runs, slowly: DeepSpeed cannot prefetch
    deepspeed --num_gpus 2 examples/changing_depth.py               the repaired program

Stochastic depth with a seed that all ranks share: no rank waits for another, but the graph of each step is another
one, and DeepSpeed loses the order of modules that it has recorded.
The repair: all blocks are run, and those that are left out have weight 0.
"""
import random

import deepspeed
import torch

from small_model import BLOCKS, Model, arguments, batch, say, this_rank, zero_config


class ShallowModel(Model):
    mistake = False
    left_out = ()

    def forward(self, x, target):
        x = self.embed(x)
        for number, block in enumerate(self.blocks):
            if number in self.left_out:
                x = x if self.mistake else x + 0 * block(x)
            else:
                x = block(x)
        return (self.head(x) - target).float().pow(2).mean()


args = arguments(mistake="blocks are left out")
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
with deepspeed.zero.Init(config_dict_or_path=zero_config(3)):
    model = ShallowModel()
model.mistake = args.mistake
engine, _, _, _ = deepspeed.initialize(model=model, config=zero_config(3))
choice = random.Random(0)
for step in range(args.steps):
    model.left_out = [number for number in range(2, BLOCKS) if choice.random() < 0.2]
    loss = engine(*batch(step, rank, device))
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
torch.distributed.destroy_process_group()
