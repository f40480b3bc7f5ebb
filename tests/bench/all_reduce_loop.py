"""What a call of torch.distributed costs on the host: bursts of all_reduce, waited for outside the measured time.

    RANK=.. LOCAL_RANK=.. WORLD_SIZE=.. MASTER_ADDR=.. MASTER_PORT=.. python all_reduce_loop.py BURSTS CALLS

Rank 0 prints one line of JSON: microseconds a call in the median burst, and the resident memory of the process in MiB."""
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist

bursts, calls = int(sys.argv[1]), int(sys.argv[2])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
x = torch.ones(16, device="cuda")
costs = []
for _ in range(bursts):
    begin = time.perf_counter()
    for _ in range(calls):
        dist.all_reduce(x, async_op=True)
    costs.append((time.perf_counter() - begin) / calls * 1e6)
    torch.cuda.synchronize()
with open("/proc/self/status") as status:
    resident = next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))
dist.barrier()
if dist.get_rank() == 0:
    print(json.dumps({"us": statistics.median(costs[bursts // 5:]), "mib": resident}), flush=True)
dist.destroy_process_group()
