"""ZeRO-1: deepspeed.moe with an expert a rank; tokens go where a gate sends them, unevenly."""
import deepspeed
import torch
from torch import nn

from small_model import WIDTH, Block, arguments, batch, say, this_rank, zero_config


class MoeModel(nn.Module):
    def __init__(self, experts):
        super().__init__()
        self.embed = nn.Linear(WIDTH, WIDTH)
        self.block = Block()
        self.moe = deepspeed.moe.layer.MoE(WIDTH, Block(), num_experts=experts, ep_size=experts, k=1, min_capacity=1)
        self.head = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, target):
        y, balance, _ = self.moe(self.block(self.embed(x)))
        return (self.head(y) - target).float().pow(2).mean() + 0.01 * balance


args = arguments()
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
model = MoeModel(torch.distributed.get_world_size())
groups = deepspeed.moe.utils.split_params_into_different_moe_groups_for_optimizer(
    {"params": list(model.parameters()), "name": "all"})
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=groups, config=zero_config(1))
for step in range(args.steps):
    loss = engine(*batch(step, rank, device))
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
torch.distributed.destroy_process_group()
