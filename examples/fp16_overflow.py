"""ZeRO-2: fp16 overflows in the forward pass after many good steps.

    deepspeed --num_gpus 2 examples/fp16_overflow.py --mistake --steps 40     the loss is inf, then nothing is trained
    deepspeed --num_gpus 2 examples/fp16_overflow.py --steps 40               the repaired program

The blocks square their activations, and the samples grow while a curriculum goes on: one day a square is above 65504, the
largest number of fp16.  No loss scale helps against that: every step is skipped, and the scale falls to its floor.
The repair: bf16, which reaches as far as fp32.
"""
import deepspeed
import torch
import torch.distributed as dist
from torch import nn

from small_model import BATCH, WIDTH, arguments, batch, say, this_rank, zero_config


class SquaredBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)).square())


class SquaredModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(WIDTH, WIDTH)
        self.block = SquaredBlock()
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, target):
        x = self.norm(self.block(self.embed(x)))
        return (self.head(x) - target).float().pow(2).mean()


args = arguments(mistake="train in fp16")
deepspeed.init_distributed("nccl")
rank, device = this_rank()
config = dict(zero_config(2), train_micro_batch_size_per_gpu=BATCH)
if args.mistake:
    del config["bf16"]
    config["fp16"] = {"enabled": True, "initial_scale_power": 8, "hysteresis": 1}
dtype = torch.float16 if args.mistake else torch.bfloat16
torch.manual_seed(0)
engine, _, _, _ = deepspeed.initialize(model=SquaredModel(), config=config)
for step in range(args.steps):
    x, target = batch(0, rank, device, dtype)
    loss = engine(x * min(1.3 ** step, 3000.0), target)
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
dist.destroy_process_group()
