"""What the examples about memory share: a model whose activations are large, and samples of any length.

It is made for the simulated GPU, where memory costs nothing: `dshang dry-run -n 2 --gpu t4-16g -- deepspeed ...`.
"""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

WIDTH, BLOCKS = 1024, 8


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Model(nn.Module):
    """`checkpointing`: the activations of a block are computed anew in backward."""

    def __init__(self, checkpointing=False, blocks=BLOCKS):
        super().__init__()
        self.checkpointing = checkpointing
        self.blocks = nn.ModuleList(Block() for _ in range(blocks))
        self.head = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointing else block(x)
        return self.head(x).float().pow(2).mean()


class WithHead(Model):
    """Outputs that are larger than what they are made of, as those of language models."""

    def __init__(self, vocabulary=32768):
        super().__init__()
        self.head = nn.Linear(WIDTH, vocabulary, bias=False)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def samples(count, length, device):
    return torch.zeros(count, length, WIDTH, device=device, dtype=torch.bfloat16)


def config(stage, micro_batch, **more):
    return {"train_micro_batch_size_per_gpu": micro_batch, "gradient_accumulation_steps": 1,
            "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
            "bf16": {"enabled": True}, "steps_per_print": 10 ** 9, "zero_optimization": {"stage": stage}, **more}
