"""DistributedDataParallel: one rank begins training with other weights.

    torchrun --nproc_per_node 2 examples/weights_on_rank_0.py --mistake     trains two models at once, and says nothing
    torchrun --nproc_per_node 2 examples/weights_on_rank_0.py               the repaired program

The head was trained before, and only rank 0 reads its file; but the model is wrapped already, and DistributedDataParallel
has sent what the others keep.
The repair: rank 0 reads the file before the model is wrapped.
"""
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from small_model import Model, arguments, batch, say, this_rank


def trained_head():
    """As torch.load would give it."""
    generator = torch.Generator().manual_seed(7)
    return {name: 0.1 * torch.randn(value.shape, generator=generator) for name, value in Model().head.state_dict().items()}


args = arguments(mistake="rank 0 reads the head after the model was wrapped")
rank, device = this_rank()
dist.init_process_group("nccl")
torch.manual_seed(rank)
model = Model().to(device)
if rank == 0 and not args.mistake:
    model.head.load_state_dict(trained_head())
model = DistributedDataParallel(model, device_ids=[device.index])
if rank == 0 and args.mistake:
    model.module.head.load_state_dict(trained_head())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(args.steps):
    loss = model(*batch(step, rank, device, torch.float32))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    say(rank, f"step {step} loss {loss.item():.6f}")
dist.destroy_process_group()
