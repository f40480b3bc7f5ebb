"""DDP: a cache takes nearly all that is free before the communicators of an evaluation exist.

    dshang dry-run -n 2 --gpu t4-16g -- torchrun examples/crowded_communicator.py --mistake
    dshang dry-run -n 2 --gpu t4-16g -- torchrun examples/crowded_communicator.py            the repaired program

torch makes a communicator when a group is used for the first time, and NCCL takes some 100 MiB for each, outside of torch's
allocator (SIMGPU_COMM_MB on the simulated GPU).  What the ranks say themselves is "unhandled cuda error".
The repair: groups are used once at the start, and the cache leaves room.
"""
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from memory_model import Model, samples
from small_model import arguments, say, this_rank

args = arguments(mistake="the cache comes first, and takes 97 % of what is free")
rank, device = this_rank()
dist.init_process_group("nccl")
evaluation = dist.new_group()
if not args.mistake:
    dist.barrier(group=evaluation, device_ids=[device.index])
model = DistributedDataParallel(Model().to(device, torch.bfloat16), device_ids=[device.index])
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
cache = None
for step in range(args.steps):
    loss = model(samples(4, 1024, device))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if cache is None:                      # what training needs is known now
        free, _ = torch.cuda.mem_get_info()
        cache = torch.empty(int((0.97 if args.mistake else 0.9) * free), dtype=torch.uint8, device=device)
    if step >= 3:
        dist.all_reduce(loss, group=evaluation)
    say(rank, f"step {step} done")
dist.destroy_process_group()
