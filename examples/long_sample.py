"""DDP: after many steps one rank gets a sample sixteen times as long as any before, and runs out of memory.

    dshang dry-run -n 2 --gpu t4-16g -- torchrun examples/long_sample.py --mistake --steps 40
    dshang dry-run -n 2 --gpu t4-16g -- torchrun examples/long_sample.py --steps 40     the repaired program

The repair: samples are cut at a length.
"""
import torch
from torch.nn.parallel import DistributedDataParallel

from memory_model import Model, samples
from small_model import arguments, say, this_rank

COUNT, USUAL, LONG, LONGEST = 8, 1024, 16384, 2048

args = arguments(mistake="samples are not cut at a length")
rank, device = this_rank()
torch.distributed.init_process_group("nccl")
model = DistributedDataParallel(Model().to(device, torch.bfloat16), device_ids=[device.index])
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
for step in range(args.steps):
    length = LONG if rank == 1 and step == args.steps - 2 else USUAL
    model(samples(COUNT, length if args.mistake else min(length, LONGEST), device)).backward()
    optimizer.step()
    optimizer.zero_grad()
    say(rank, f"step {step} done")
torch.distributed.destroy_process_group()
