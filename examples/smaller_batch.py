"""DDP: all ranks look for the largest batch that fits: they catch the exception and go on with half of it.

    dshang dry-run -n 2 --gpu t4-16g -- torchrun examples/smaller_batch.py

Healthy: a request that was refused, and that all ranks went on without, is no trouble.
"""
import time

import torch
from torch.nn.parallel import DistributedDataParallel

from memory_model import Model, samples
from small_model import arguments, say, this_rank

args = arguments()
rank, device = this_rank()
torch.distributed.init_process_group("nccl")
model = DistributedDataParallel(Model().to(device, torch.bfloat16), device_ids=[device.index])
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
count = 200
for step in range(args.steps):
    while True:
        try:
            loss = model(samples(count, 1024, device))
            break
        except torch.cuda.OutOfMemoryError:
            say(rank, f"{count} samples are too many")
        count //= 2                              # the exception, and what it keeps alive, is gone here
        torch.cuda.empty_cache()
        time.sleep(3)                            # its data are prepared anew
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    say(rank, f"step {step} done with {count} samples")
torch.distributed.destroy_process_group()
