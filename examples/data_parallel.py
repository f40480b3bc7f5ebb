"""Every rank wraps its model in torch.nn.DataParallel, which works on all cards and gathers on the first one.

    dshang dry-run -n 2 --gpu t4-16g -- torchrun examples/data_parallel.py --mistake
    dshang dry-run -n 2 --gpu t4-16g -- torchrun examples/data_parallel.py            the repaired program

So it comes about where a program that was written for one process is started by a launcher: the first card holds the
models, gradients and outputs of all ranks, and the loss is computed on it.
The repair: DistributedDataParallel, a rank for each card.
"""
import torch
from torch import nn

from memory_model import WithHead, samples
from small_model import arguments, say, this_rank

args = arguments(mistake="the model is wrapped in torch.nn.DataParallel")
rank, device = this_rank()
torch.distributed.init_process_group("nccl")
torch.distributed.barrier(device_ids=[device.index])
if args.mistake:
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    model = nn.DataParallel(WithHead().to(device, torch.bfloat16))
else:
    model = nn.parallel.DistributedDataParallel(WithHead().to(device, torch.bfloat16), device_ids=[device.index])
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
for step in range(args.steps):
    model(samples(16, 1024, device)).float().pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    say(rank, f"step {step} done")
torch.distributed.destroy_process_group()
