"""DistributedDataParallel: the loss is nan from the first step, because of one sample.

    torchrun --nproc_per_node 2 examples/broken_batch.py --mistake     the loss is nan from the first step on
    torchrun --nproc_per_node 2 examples/broken_batch.py               the repaired program

Each sample is divided by its own standard deviation, and one sample that rank 1 reads is constant: 0 / 0.
The repair: the deviation is kept away from 0.
"""
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

from small_model import BATCH, WIDTH, Model, arguments, say, this_rank


class Signals(Dataset):
    """The samples of one rank."""

    def __init__(self, rank, steps, smallest):
        generator = torch.Generator().manual_seed(rank)
        self.samples = torch.randn(BATCH * steps, WIDTH, generator=generator)
        if rank == 1:
            self.samples[2] = 0.5                     # a sensor that was off
        self.smallest = smallest

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        sample = self.samples[index]
        signal = (sample - sample.mean()) / sample.std().clamp(min=self.smallest)
        return {"signal": signal, "target": 0.5 * signal}


args = arguments(mistake="the standard deviation may be 0")
rank, device = this_rank()
dist.init_process_group("nccl")
torch.manual_seed(0)
model = DistributedDataParallel(Model().to(device), device_ids=[device.index])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loader = DataLoader(Signals(rank, args.steps, smallest=0.0 if args.mistake else 1e-3), batch_size=BATCH)
for step, batch in enumerate(loader):
    loss = model(batch["signal"].to(device), batch["target"].to(device))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    say(rank, f"step {step} loss {loss.item():.6f}")
dist.destroy_process_group()
