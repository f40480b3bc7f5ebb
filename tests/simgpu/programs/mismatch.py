"""Two ranks all-reduce different numbers of elements: torch's own watchdog ends them."""
import datetime
import os

import torch
import torch.distributed as dist

from whole_line import say

rank = int(os.environ["RANK"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=5))
dist.all_reduce(torch.ones(4, device="cuda"))
torch.cuda.synchronize()
say("first call complete")
dist.all_reduce(torch.ones(16 if rank == 1 else 8, device="cuda"))
torch.cuda.synchronize()
say("second call complete")
