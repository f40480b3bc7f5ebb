"""ZeRO-3: an expert of a mixture gets no token on one rank.

    deepspeed --num_gpus 2 examples/idle_expert.py --mistake        stops in step 4
    deepspeed --num_gpus 2 examples/idle_expert.py                  the repaired program

Each token goes through the expert of its kind, and an expert without tokens is not run.  Its parameters are not
gathered then, while the other ranks wait in that gather.
The repair: the experts are one leaf module, which DeepSpeed gathers and reduces as a whole.
"""
import deepspeed
import torch
from deepspeed.utils import set_z3_leaf_modules
from torch import nn

from small_model import BATCH, Block, Model, arguments, batch, say, this_rank, zero_config

EXPERTS = 4


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(Block() for _ in range(EXPERTS))

    def forward(self, x, kinds):
        result = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            mine = [index for index, kind in enumerate(kinds) if kind == number]
            if mine:
                result[mine] = expert(x[mine])
        return result


class MixtureModel(Model):
    def __init__(self):
        super().__init__()
        self.mixture = Mixture()

    def forward(self, x, target, kinds):
        x = self.embed(x)
        for number, block in enumerate(self.blocks):
            x = block(x)
            if number == 3:
                x = x + self.mixture(x, kinds)
        return (self.head(x) - target).float().pow(2).mean()


args = arguments(mistake="no leaf module; rank 1 has no token of kind 2 from step 4 on")
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
with deepspeed.zero.Init(config_dict_or_path=zero_config(3)):
    model = MixtureModel()
if not args.mistake:
    set_z3_leaf_modules(model, [Mixture])
engine, _, _, _ = deepspeed.initialize(model=model, config=zero_config(3))
for step in range(args.steps):
    kinds = [index % EXPERTS for index in range(BATCH)]
    if rank == 1 and step >= 4:
        kinds[2] = 0
    loss = engine(*batch(step, rank, device), kinds=kinds)
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
torch.distributed.destroy_process_group()
