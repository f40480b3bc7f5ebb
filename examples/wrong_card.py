"""DDP: every rank puts its table of features on `cuda:0`, and the first card runs out of memory.

    dshang dry-run -n 2 --gpu t4-16g -- torchrun examples/wrong_card.py --mistake
    dshang dry-run -n 2 --gpu t4-16g -- torchrun examples/wrong_card.py            the repaired program

So do `torch.load` without `map_location` (tensors go where they were saved from), and `cuda` before
`torch.cuda.set_device`.
The repair: the table goes to the rank's own card.
"""
import torch
from torch.nn.parallel import DistributedDataParallel

from memory_model import Model, samples
from small_model import arguments, say, this_rank

GIB = 1 << 30

args = arguments(mistake="the table goes to cuda:0 on every rank")
rank, device = this_rank()
torch.distributed.init_process_group("nccl")
table = torch.empty(6 * GIB, dtype=torch.uint8, device="cuda:0" if args.mistake else device)
torch.distributed.barrier(device_ids=[device.index])
model = DistributedDataParallel(Model().to(device, torch.bfloat16), device_ids=[device.index])
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
for step in range(args.steps):
    model(samples(16, 1024, device)).backward()
    optimizer.step()
    optimizer.zero_grad()
    say(rank, f"step {step} done")
torch.distributed.destroy_process_group()
