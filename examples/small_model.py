"""What the examples share: a small model of equal blocks, its data, and a ZeRO-3 configuration.

Prefetching and the limit of live parameters are DeepSpeed's defaults, as in real jobs.  Only the threshold below which
a parameter is kept whole on every rank is 0, because in so small a model nothing would be sharded otherwise.
"""
import argparse
import os
import sys

import torch
from torch import nn

WIDTH, BLOCKS, BATCH = 32, 8, 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


class Model(nn.Module):
    """A loop over equal blocks; a loss when targets are given."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(WIDTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.head = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, target):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return (self.head(x) - target).float().pow(2).mean()


def zero_config(stage, accumulation=1):
    return {"train_micro_batch_size_per_gpu": BATCH, "gradient_accumulation_steps": accumulation,
            "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},   # no compiled extension needed
            "bf16": {"enabled": True}, "gradient_clipping": 1.0, "steps_per_print": 10 ** 9,
            "zero_optimization": {"stage": stage, "stage3_param_persistence_threshold": 0}}


def arguments(mistake=None, **flags):
    """--steps, --mistake where the example has one, and more flags with their help; the launcher's own are accepted."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--local_rank", type=int, default=0)
    if mistake:
        flags["mistake"] = mistake
    for flag, meaning in flags.items():
        parser.add_argument("--" + flag, action="store_true", help=meaning)
    return parser.parse_args()


def this_rank():
    """(rank, device) of this process; makes the device the current one."""
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    return int(os.environ["RANK"]), torch.device("cuda", local)


def batch(step, rank, device, dtype=torch.bfloat16):
    """The same batch for the same step and rank, every time."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    x = torch.randn(BATCH, WIDTH, generator=generator)
    return x.to(device, dtype), (x * 0.5).to(device, dtype)


def say(rank, text):
    sys.stdout.write(f"[rank {rank}] {text}\n")   # one write: ranks share the terminal
    sys.stdout.flush()
