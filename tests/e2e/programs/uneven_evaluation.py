"""DistributedDataParallel over loaders with workers, in epochs; each rank evaluates the bare model on as much data as it has,
without collectives, and only the sums are reduced."""
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from small_model import BATCH, WIDTH, Model, arguments, say, this_rank


def data(samples, seed):
    x = torch.randn(samples, WIDTH, generator=torch.Generator().manual_seed(seed))
    return TensorDataset(x, 0.5 * x)


def evaluate():
    """The mean over the batches of all ranks, of which rank 1 has three times as many."""
    total = torch.zeros(2, device=device)
    with torch.no_grad():
        for x, target in DataLoader(data(BATCH * (6 if rank == 1 else 2), 100 + rank), batch_size=BATCH):
            total += torch.stack([model.module(x.to(device), target.to(device)), torch.ones((), device=device)])
    dist.all_reduce(total)
    return (total[0] / total[1]).item()


args = arguments()
rank, device = this_rank()
dist.init_process_group("nccl")
torch.manual_seed(0)
model = DistributedDataParallel(Model().to(device), device_ids=[device.index])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
everything = data(2 * BATCH * dist.get_world_size() + 1, 1)
sampler = DistributedSampler(everything, drop_last=True)
loader = DataLoader(everything, batch_size=BATCH, sampler=sampler, num_workers=1)
for step in range(args.steps):
    if step % 2 == 0:
        sampler.set_epoch(step // 2)
        batches = iter(loader)
    x, target = next(batches)
    loss = model(x.to(device), target.to(device))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    say(rank, f"step {step} loss {loss.item():.6f}")
    if step % 2 == 1:
        say(rank, f"step {step} evaluation {evaluate():.6f}")
dist.destroy_process_group()
