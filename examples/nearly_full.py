"""DDP: a step that just fits: the next longer sample, or a new communicator, will not.

    dshang dry-run -n 2 --gpu t4-16g -- torchrun examples/nearly_full.py --mistake
    dshang dry-run -n 2 --gpu t4-16g -- torchrun examples/nearly_full.py            the repaired program

The repair: fewer samples in a batch.
"""
import torch
from torch.nn.parallel import DistributedDataParallel

from memory_model import Model, samples
from small_model import arguments, say, this_rank

args = arguments(mistake="a batch that nearly fills the card")
rank, device = this_rank()
torch.distributed.init_process_group("nccl")
model = DistributedDataParallel(Model().to(device, torch.bfloat16), device_ids=[device.index])
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
for step in range(args.steps):
    model(samples(77 if args.mistake else 32, 1024, device)).backward()
    optimizer.step()
    optimizer.zero_grad()
    say(rank, f"step {step} done")
torch.distributed.destroy_process_group()
