"""DDP: one rank gets three times as many samples as the others, and needs twice their memory.

    dshang dry-run -n 2 --gpu t4-16g -- torchrun examples/unequal_batches.py --mistake
    dshang dry-run -n 2 --gpu t4-16g -- torchrun examples/unequal_batches.py            the repaired program
"""
import torch
from torch.nn.parallel import DistributedDataParallel

from memory_model import Model, samples
from small_model import arguments, say, this_rank

COUNT, LENGTH = 8, 1024

args = arguments(mistake="rank 1 has three times as many samples")
rank, device = this_rank()
torch.distributed.init_process_group("nccl")
model = DistributedDataParallel(Model().to(device, torch.bfloat16), device_ids=[device.index])
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
for step in range(max(args.steps, 12)):
    count = 3 * COUNT if args.mistake and rank == 1 else COUNT
    model(samples(count, LENGTH, device)).backward()
    optimizer.step()
    optimizer.zero_grad()
    say(rank, f"step {step} done")
torch.distributed.destroy_process_group()
