"""FSDP2 (fully_shard), each block sharded on its own: nothing wrong here.

    torchrun --nproc_per_node=2 examples/fsdp2.py
"""
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

from small_model import Model, arguments, batch, say, this_rank

args = arguments()
rank, device = this_rank()
dist.init_process_group("nccl", device_id=device)
torch.manual_seed(0)
model = Model().to(device)
for block in model.blocks:
    fully_shard(block)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(args.steps):
    loss = model(*batch(step, rank, device, torch.float32))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    say(rank, f"step {step} loss {loss.item():.6f}")
dist.destroy_process_group()
