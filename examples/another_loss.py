"""DistributedDataParallel: from a certain step on the loss is another one, on purpose: a sum instead of a mean.

    torchrun --nproc_per_node 2 examples/another_loss.py --steps 40

Healthy: the norm of the gradients jumps by the factor by which the loss does, and clipping keeps the steps small.
"""
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from small_model import Model, arguments, batch, say, this_rank

CHANGE, FACTOR = 24, 20

args = arguments()
rank, device = this_rank()
dist.init_process_group("nccl")
torch.manual_seed(0)
model = DistributedDataParallel(Model().to(device), device_ids=[device.index])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(args.steps):
    loss = model(*batch(step, rank, device, torch.float32))
    if step >= CHANGE:
        loss = FACTOR * loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    optimizer.step()
    optimizer.zero_grad()
    say(rank, f"step {step} loss {loss.item():.6f}")
dist.destroy_process_group()
