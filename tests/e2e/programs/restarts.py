"""Ranks add up tensors; in the job's first attempt, and in no later one, rank 1 makes another call in step 3."""
import os

import torch
import torch.distributed as dist

rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
numbers = torch.ones(1024, device="cuda")
for step in range(6):
    if rank == 1 and step == 3 and attempt == 0:
        dist.broadcast(numbers, 0)
    else:
        dist.all_reduce(numbers)
    torch.cuda.synchronize()
print(f"rank {rank} is through in attempt {attempt}", flush=True)
dist.destroy_process_group()
