"""DistributedDataParallel, evaluating now and then.  With --mistake rank 1 averages two numbers where others average one."""
import common  # noqa: F401
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from small_model import BATCH, WIDTH, Model, arguments, batch, say, this_rank


def evaluate(count):
    """The mean of all ranks' metrics."""
    model.eval()
    with torch.no_grad():
        value = model(*batch(10_000, rank, device, torch.float32))
    values = torch.stack([value] * count)
    dist.all_reduce(values, op=dist.ReduceOp.AVG)
    model.train()
    return values[0].item()


args = arguments(mistake="rank 1 has another number of metrics after step 4")
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
    say(rank, f"step {step} loss {loss.item():.6f}")
    if step % 2 == 0:
        say(rank, f"step {step} evaluation {evaluate(2 if args.mistake and rank == 1 and step == 4 else 1):.6f}")
dist.destroy_process_group()
