"""ZeRO-3: in each step other ranks have no images; they run the images' blocks on zeros and multiply that by 0."""
import random

import deepspeed
import torch
from torch import nn

from small_model import Block, Model, arguments, batch, say, this_rank, zero_config


class TwoTowers(Model):
    def __init__(self):
        super().__init__()
        self.images = nn.ModuleList(Block() for _ in range(2))

    def forward(self, x, target, images=None):
        y = self.embed(x)
        if images is None:
            y = y + 0 * self.seen(torch.zeros_like(y))
        else:
            y = y + self.seen(images)
        for block in self.blocks:
            y = block(y)
        return (self.head(y) - target).float().pow(2).mean()

    def seen(self, images):
        for block in self.images:
            images = block(images)
        return images


args = arguments()
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
with deepspeed.zero.Init(config_dict_or_path=zero_config(3)):
    model = TwoTowers()
engine, _, _, _ = deepspeed.initialize(model=model, config=zero_config(3))
choice = random.Random(rank)
for step in range(args.steps):
    x, target = batch(step, rank, device)
    loss = engine(x, target, images=x if choice.random() < 0.5 else None)
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
torch.distributed.destroy_process_group()
