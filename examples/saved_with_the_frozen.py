"""ZeRO-3 with adapters on a frozen model: for the file of the adapters, all weights are gathered on every device at once.

    dshang dry-run -n 2 --gpu t4-16g -- deepspeed --num_gpus 2 examples/saved_with_the_frozen.py --mistake
    dshang dry-run -n 2 --gpu t4-16g -- deepspeed --num_gpus 2 examples/saved_with_the_frozen.py    the repaired program

In training a block at a time is whole on a device; GatheredParameters over model.parameters() makes the whole model so.
The repair: only what was trained is gathered.
"""
import os
import tempfile

import deepspeed
import torch
import torch.distributed as dist
from torch import nn

from memory_model import config
from small_model import arguments, say, this_rank

WIDTH, RANK, BLOCKS = 8192, 8, 13


class Adapted(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)
        self.up.requires_grad_(False), self.down.requires_grad_(False)
        self.adapter = nn.Sequential(nn.Linear(WIDTH, RANK, bias=False), nn.Linear(RANK, WIDTH, bias=False))

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x))) + self.adapter(x)


class Model(nn.Sequential):
    def forward(self, x):
        return super().forward(x).float().pow(2).mean()


def save_adapters(model, path):
    trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    gathered = model.parameters() if args.mistake else trained.values()
    with deepspeed.zero.GatheredParameters(list(gathered)):
        if rank == 0:
            torch.save({name: weight.detach().cpu() for name, weight in trained.items()}, path)


args = arguments(mistake="all weights are gathered for the file of the adapters")
deepspeed.init_distributed("nccl")
rank, device = this_rank()
settings = config(3, 1)
with deepspeed.zero.Init(config_dict_or_path=settings):
    model = Model(*(Adapted() for _ in range(BLOCKS)))
engine, _, _, _ = deepspeed.initialize(model=model, config=settings)
folder = [tempfile.mkdtemp() if rank == 0 else None]
dist.broadcast_object_list(folder)
for step in range(args.steps):
    engine.backward(engine(torch.zeros(1, 512, WIDTH, device=device, dtype=torch.bfloat16)))
    engine.step()
    say(rank, f"step {step} done")
    if step == 3:
        save_adapters(engine.module, os.path.join(folder[0], "adapters.pt"))
        say(rank, "saved")
dist.destroy_process_group()
