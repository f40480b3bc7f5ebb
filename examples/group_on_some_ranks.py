"""DistributedDataParallel: a group that only its members create.

    torchrun --nproc_per_node 2 examples/group_on_some_ranks.py --mistake           stops after step 3
    torchrun --nproc_per_node 2 examples/group_on_some_ranks.py --mistake --bound   the same, while groups are made
    torchrun --nproc_per_node 2 examples/group_on_some_ranks.py                     the repaired program

new_group has to be called on all ranks, on those outside the group too.  Nothing waits at once: torch numbers the
groups, and the next group has one number on some ranks and another on the others, who never meet in it.  Where the
default group is bound to a device (--bound), each new_group splits its communicator, in which NCCL waits for all ranks:
the first split of some meets the first of the others, which is another group's, and the next one waits.
The repair: all ranks call new_group.
"""
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from small_model import Model, arguments, batch, say, this_rank

args = arguments(mistake="only ranks with even numbers call new_group", bound="bind the default group to the device")
rank, device = this_rank()
dist.init_process_group("nccl", device_id=device if args.bound else None)
torch.manual_seed(0)
model = DistributedDataParallel(Model().to(device), device_ids=[device.index])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
even = list(range(0, dist.get_world_size(), 2))


def groups():
    """One of the even ranks, and one of all."""
    some = dist.new_group(even) if rank in even or not args.mistake else None
    return some, dist.new_group()


def log(value, group):
    dist.all_reduce(value, group=group)


for step in range(args.steps):
    loss = model(*batch(step, rank, device, torch.float32))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    say(rank, f"step {step} loss {loss.item():.6f}")
    if step == 3:
        some, everybody = groups()
        log(loss.detach().clone(), everybody)
        if rank in even:
            log(loss.detach().clone(), some)
dist.destroy_process_group()
