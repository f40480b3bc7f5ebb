"""DDP: the losses are kept for a mean, and with each of them its activations: memory grows until it is used up.

    dshang dry-run -n 2 --gpu t4-16g -- torchrun examples/kept_losses.py --mistake --steps 200
    dshang dry-run -n 2 --gpu t4-16g -- torchrun examples/kept_losses.py --steps 200    the repaired program

The repair: the number is kept, not the tensor with its graph.
"""
import torch
from torch.nn.parallel import DistributedDataParallel

from memory_model import WIDTH, Model, samples
from small_model import arguments, say, this_rank

args = arguments(mistake="the mean is made of tensors with their graphs")
rank, device = this_rank()
torch.distributed.init_process_group("nccl")
model = DistributedDataParallel(Model().to(device, torch.bfloat16), device_ids=[device.index])
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
watched = torch.nn.Linear(WIDTH, WIDTH, device=device, dtype=torch.bfloat16)       # a measure that is only looked at
kept = []
for step in range(args.steps):
    x = samples(16, 1024, device)
    loss = model(x)
    measure = watched(x).float().pow(2).sum(-1)
    kept.append(measure if args.mistake else measure.mean().item())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    say(rank, f"step {step} done")
torch.distributed.destroy_process_group()
