"""DDP: outputs grow from step to step, the best half of each is kept, and what is free lies in pieces that are too small.

    dshang dry-run -n 2 --gpu t4-16g -- torchrun examples/fragmented.py --mistake
    dshang dry-run -n 2 --gpu t4-16g -- torchrun examples/fragmented.py            the repaired program

What is kept lies in the memory of an earlier step's outputs; the rest of that memory is too small for the next ones, and
cannot be given back, because a part of it is in use.
The repair: segments that grow, set before the first allocation (better in the job's environment than here).
"""
import os
import sys

if "--mistake" not in sys.argv:
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"

from collections import deque

import torch
from torch.nn.parallel import DistributedDataParallel

from memory_model import Model, samples
from small_model import arguments, say, this_rank

MIB, FIRST, GROWTH, KEPT, BEST = 1 << 20, 1900, 75, 6, 0.5

args = arguments(mistake="the allocator takes a segment for each large request")
rank, device = this_rank()
torch.distributed.init_process_group("nccl")
model = DistributedDataParallel(Model().to(device, torch.bfloat16), device_ids=[device.index])
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
best = deque(maxlen=KEPT)                  # of the newest steps
for step in range(max(args.steps, 10)):
    outputs = torch.empty(FIRST + GROWTH * step, MIB, dtype=torch.uint8, device=device)
    best.append(outputs[:int(BEST * len(outputs))].clone())
    del outputs
    model(samples(4, 1024, device)).backward()
    optimizer.step()
    optimizer.zero_grad()
    say(rank, f"step {step} done")
torch.distributed.destroy_process_group()
