"""Ranks that all-reduce again and again."""
import datetime
import os

import torch
import torch.distributed as dist

from whole_line import say

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=600))
values = torch.ones(1000, device="cuda")
for call in range(1, 9):
    dist.all_reduce(values)
    torch.cuda.synchronize()
    say(f"complete {call} on {dist.get_rank()}")
