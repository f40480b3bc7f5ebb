"""ZeRO-1: the ranks bring models of different shape.

    deepspeed --num_gpus 2 examples/unequal_models.py --mistake     stops while the engine is made
    deepspeed --num_gpus 2 examples/unequal_models.py               the repaired program

The last layer has one output for each label that a rank finds in its own part of the data, and rank 1 does not see them
all.
The repair: the ranks agree on the number of labels before they build the model.
"""
import deepspeed
import torch
import torch.distributed as dist
from torch import nn

from small_model import BATCH, WIDTH, Block, arguments, say, this_rank, zero_config

LABELS = 10


class Classifier(nn.Module):
    def __init__(self, labels):
        super().__init__()
        self.embed = nn.Linear(WIDTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        self.head = nn.Linear(WIDTH, labels)

    def forward(self, x, wanted):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return nn.functional.cross_entropy(self.head(x).float(), wanted)


def samples(step, rank):
    """Labels that can be learned; rank 1 has none of the last one."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    wanted = torch.randint(0, LABELS - (rank == 1), (BATCH,), generator=generator)
    x = 0.1 * torch.randn(BATCH, WIDTH, generator=generator)
    return x + 3 * nn.functional.one_hot(wanted, WIDTH), wanted


args = arguments(mistake="each rank counts the labels of its own data")
deepspeed.init_distributed("nccl")
rank, device = this_rank()
labels = 1 + max(samples(step, rank)[1].max().item() for step in range(64))
if not args.mistake:
    everybody = torch.tensor([labels], device=device)
    dist.all_reduce(everybody, op=dist.ReduceOp.MAX)
    labels = int(everybody.item())
torch.manual_seed(0)
engine, _, _, _ = deepspeed.initialize(model=Classifier(labels), config=zero_config(1))
for step in range(args.steps):
    x, wanted = samples(step, rank)
    loss = engine(x.to(device, torch.bfloat16), wanted.to(device))
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
dist.destroy_process_group()
