"""DDP: rank 1 empties the allocator's cache in every step; taking the memory anew costs time, and the others wait.

    SIMGPU_ALLOC_US=3000 dshang dry-run -n 2 --gpu t4-16g -- torchrun examples/emptied_cache.py --mistake --steps 20
    SIMGPU_ALLOC_US=3000 dshang dry-run -n 2 --gpu t4-16g -- torchrun examples/emptied_cache.py --steps 20    the repaired program

On hardware cudaFree waits for the device, and cudaMalloc takes up to some milliseconds; the simulated ones take what
SIMGPU_ALLOC_US says.
The repair: the cache is left alone.
"""
import torch
from torch.nn.parallel import DistributedDataParallel

from memory_model import Model, samples
from small_model import arguments, say, this_rank

args = arguments(mistake="rank 1 empties the cache after each step")
rank, device = this_rank()
torch.distributed.init_process_group("nccl")
model = DistributedDataParallel(Model().to(device, torch.bfloat16), device_ids=[device.index])
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
for step in range(args.steps):
    model(samples(8, 1024, device)).backward()
    optimizer.step()
    optimizer.zero_grad()
    if args.mistake and rank == 1:
        torch.cuda.empty_cache()
    say(rank, f"step {step} done")
torch.distributed.destroy_process_group()
