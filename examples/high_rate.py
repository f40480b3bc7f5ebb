"""DistributedDataParallel: a learning rate that is too high.

    torchrun --nproc_per_node 2 examples/high_rate.py --mistake --steps 40     norms jump and stay high
    torchrun --nproc_per_node 2 examples/high_rate.py --steps 40               the repaired program

After a warm-up the rate is what another optimizer would have wanted.
The repair: a rate that fits Adam.
"""
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from small_model import Model, arguments, batch, say, this_rank

WARM_UP = 20

args = arguments(mistake="the learning rate of plain gradient descent for Adam")
rank, device = this_rank()
dist.init_process_group("nccl")
torch.manual_seed(0)
model = DistributedDataParallel(Model().to(device), device_ids=[device.index])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(args.steps):
    if step == WARM_UP:
        for group in optimizer.param_groups:
            group["lr"] = 0.5 if args.mistake else 1e-3
    loss = model(*batch(step, rank, device, torch.float32))
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    optimizer.step()
    optimizer.zero_grad()
    say(rank, f"step {step} loss {loss.item():.6f}")
dist.destroy_process_group()
