"""ZeRO-3: the ranks have different numbers of batches.

    deepspeed --num_gpus 2 examples/unequal_loader.py --mistake     stops when rank 1 has no more batches
    deepspeed --num_gpus 2 examples/unequal_loader.py               the repaired program

Each rank reads its own part of the data and leaves out samples that cannot be used; rank 1's part has more of those.
The repair: what can be used is decided first, and a DistributedSampler gives every rank equally many of it.
"""
import deepspeed
import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from small_model import BATCH, WIDTH, Model, arguments, say, this_rank, zero_config


class Samples(Dataset):
    """Those numbered samples, each made from its number."""

    def __init__(self, numbers):
        self.numbers = numbers

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, index):
        x = torch.randn(WIDTH, generator=torch.Generator().manual_seed(self.numbers[index]))
        return x, 0.5 * x


def usable(number):
    return number % 16 != 1


def loader_of(rank, world, steps, mistake):
    everything = range(steps * BATCH * world)
    if mistake:
        mine = [number for number in everything[rank::world] if usable(number)]
        return DataLoader(Samples(mine), batch_size=BATCH)
    shared = Samples([number for number in everything if usable(number)])
    sampler = DistributedSampler(shared, num_replicas=world, rank=rank, drop_last=True)
    return DataLoader(shared, batch_size=BATCH, sampler=sampler, drop_last=True)


args = arguments(mistake="each rank reads a part of its own")
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
with deepspeed.zero.Init(config_dict_or_path=zero_config(3)):
    model = Model()
engine, _, _, _ = deepspeed.initialize(model=model, config=zero_config(3))
loader = loader_of(rank, torch.distributed.get_world_size(), args.steps, args.mistake)
say(rank, f"{len(loader)} batches")
for step, (x, target) in enumerate(loader):
    loss = engine(x.to(device, torch.bfloat16), target.to(device, torch.bfloat16))
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
torch.distributed.barrier()
torch.distributed.destroy_process_group()
