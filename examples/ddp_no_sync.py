"""DistributedDataParallel with accumulation under no_sync: nothing wrong here.

    torchrun --nproc_per_node=2 examples/ddp_no_sync.py
"""
import contextlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from small_model import Model, arguments, batch, say, this_rank

args = arguments()
rank, device = this_rank()
dist.init_process_group("nccl")
torch.manual_seed(0)
model = DistributedDataParallel(Model().to(device), device_ids=[device.index])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(args.steps):
    for micro in range(2):
        with model.no_sync() if micro == 0 else contextlib.nullcontext():
            loss = model(*batch(2 * step + micro, rank, device, torch.float32))
            (loss / 2).backward()
    optimizer.step()
    optimizer.zero_grad()
    say(rank, f"step {step} loss {loss.item():.6f}")
dist.destroy_process_group()
