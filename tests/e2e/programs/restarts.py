"""Ranks add up tensors; in the job's first attempt, and in no later one, rank 1 makes another call in step 3."""
import os
import sys

import torch
import torch.distributed as dist

rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
# A store for each attempt: in one that is shared, a fast rank may find the NCCL id of the first attempt.
dist.init_process_group("nccl", init_method=f"file://{os.environ['SCENARIO_DIR']}/store-{attempt}", rank=rank,
                        world_size=int(os.environ["WORLD_SIZE"]))
numbers = torch.ones(1024, device="cuda")
for step in range(6):
    if rank == 1 and step == 3 and attempt == 0:
        dist.broadcast(numbers, 0)
    else:
        dist.all_reduce(numbers)
    torch.cuda.synchronize()
sys.stdout.write(f"rank {rank} is through in attempt {attempt}\n")       # in one piece: ranks share the pipe
sys.stdout.flush()
dist.destroy_process_group()
