"""DistributedDataParallel: trained in bf16, evaluated in fp16.

    torchrun --nproc_per_node 2 examples/evaluated_in_fp16.py --mistake     training is fine, each evaluation is nan
    torchrun --nproc_per_node 2 examples/evaluated_in_fp16.py               the repaired program

torch.autocast("cuda") without a type means fp16, and the activations of this model are larger than fp16 goes.
The repair: the evaluation names the type of training.
"""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from small_model import WIDTH, arguments, batch, say, this_rank


class LoudModel(nn.Module):
    """Its hidden values are of the order of 100 000."""

    def __init__(self):
        super().__init__()
        self.loud = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WIDTH)
        with torch.no_grad():
            self.loud.weight.mul_(1e6)

    def forward(self, x, target):
        return (self.head(self.norm(self.loud(x))) - target).float().pow(2).mean()


args = arguments(mistake="evaluate under autocast without a type")
rank, device = this_rank()
dist.init_process_group("nccl")
torch.manual_seed(0)
model = DistributedDataParallel(LoudModel().to(device), device_ids=[device.index])
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(args.steps):
    model.train()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(*batch(step, rank, device, torch.float32))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    say(rank, f"step {step} loss {loss.item():.6f}")
    if step % 4 == 3:
        model.eval()
        with torch.no_grad(), torch.autocast("cuda", dtype=None if args.mistake else torch.bfloat16):
            loss = model(*batch(10 ** 6 + step, rank, device, torch.float32))
        say(rank, f"step {step} evaluation {loss.item():.6f}")
dist.destroy_process_group()
