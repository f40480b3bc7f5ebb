"""DistributedDataParallel under Join: the last rank has two batches fewer than the others, and that is allowed for."""
import torch
import torch.distributed as dist
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel

from small_model import Model, arguments, batch, say, this_rank

args = arguments()
rank, device = this_rank()
dist.init_process_group("nccl")
torch.manual_seed(0)
model = DistributedDataParallel(Model().to(device), device_ids=[device.index])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
mine = args.steps - 2 if rank == dist.get_world_size() - 1 else args.steps
with Join([model]):
    for step in range(mine):
        loss = model(*batch(step, rank, device, torch.float32))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        say(rank, f"step {step} loss {loss.item():.6f}")
dist.barrier()
dist.destroy_process_group()
