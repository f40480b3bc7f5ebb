"""A GPT that is small enough for the simulated GPU's numerics."""
import torch
import torch.nn as nn
import torch.nn.functional as F

VOCABULARY, WIDTH, HEADS, LENGTH = 97, 32, 2, 32


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_attention, self.norm_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.norm_attention(x)).split(width, 2)
        q, k, v = (t.view(batch, length, HEADS, width // HEADS).transpose(1, 2) for t in qkv)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm_mlp(x))))


class SmallGpt(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, x):
        hidden = self.tokens(x) + self.positions(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            hidden = block(hidden)
        logits = self.head(self.norm(hidden)).float()
        return F.cross_entropy(logits.view(-1, VOCABULARY), x.reshape(-1))


def batch(seed, size=2):
    return torch.randint(0, VOCABULARY, (size, LENGTH), generator=torch.Generator().manual_seed(seed))
