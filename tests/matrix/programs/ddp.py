"""DistributedDataParallel.  With --mistake rank 1 alone averages a value for its log, from step 4 on."""
import common  # noqa: F401
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from small_model import BATCH, WIDTH, Model, arguments, say, this_rank

args = arguments(mistake="rank 1 alone averages its loss, from step 4 on")
rank, device = this_rank()
dist.init_process_group("nccl")
torch.manual_seed(0)
model = DistributedDataParallel(Model().to(device), device_ids=[device.index])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
samples = torch.randn(args.steps * BATCH * dist.get_world_size(), WIDTH, generator=torch.Generator().manual_seed(1))
data = TensorDataset(samples, samples * 0.5)
for step, (x, target) in enumerate(DataLoader(data, batch_size=BATCH, sampler=DistributedSampler(data))):
    loss = model(x.to(device), target.to(device))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if args.mistake and rank == 1 and step >= 4:
        dist.all_reduce(loss.detach(), op=dist.ReduceOp.AVG)
    say(rank, f"step {step} loss {loss.item():.6f}")
dist.destroy_process_group()
