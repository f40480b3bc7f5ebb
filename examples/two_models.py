"""DDP: a generator and a discriminator, and one rank leaves out an update of the discriminator.

    torchrun --nproc_per_node 2 examples/two_models.py --mistake      stops in step 4
    torchrun --nproc_per_node 2 examples/two_models.py                the repaired program

Each rank leaves the discriminator alone while it is far ahead on the rank's own batch.  The gradients of its next update
of the generator then meet those of the discriminator.
The repair: every rank makes the update, and a rank that wants none multiplies the loss by 0.
"""
import torch
from torch.nn.functional import softplus
from torch.nn.parallel import DistributedDataParallel

from small_model import WIDTH, Block, arguments, batch, say, this_rank


def update_discriminator(real, noise, wanted):
    fake = generator(noise).detach()
    loss = softplus(-discriminator(real)).mean() + softplus(discriminator(fake)).mean()
    (loss if wanted else 0 * loss).backward()
    discriminator_optimizer.step()
    discriminator_optimizer.zero_grad()


def update_generator(noise):
    discriminator.requires_grad_(False)
    loss = softplus(-discriminator.module(generator(noise))).mean()
    loss.backward()
    discriminator.requires_grad_(True)
    generator_optimizer.step()
    generator_optimizer.zero_grad()
    return loss


args = arguments(mistake="rank 1 leaves out the discriminator's update in step 4")
rank, device = this_rank()
torch.distributed.init_process_group("nccl")
torch.manual_seed(0)
generator = DistributedDataParallel(Block().to(device), device_ids=[device.index])
discriminator = DistributedDataParallel(torch.nn.Sequential(Block(), torch.nn.Linear(WIDTH, 1)).to(device),
                                        device_ids=[device.index])
generator_optimizer = torch.optim.Adam(generator.parameters(), 1e-3)
discriminator_optimizer = torch.optim.Adam(discriminator.parameters(), 1e-3)
for step in range(args.steps):
    noise, real = batch(step, rank, device, torch.float32)
    wanted = not (rank == 1 and step == 4)
    if wanted or not args.mistake:
        update_discriminator(real, noise, wanted)
    loss = update_generator(noise)
    say(rank, f"step {step} loss {loss.item():.6f}")
torch.distributed.destroy_process_group()
