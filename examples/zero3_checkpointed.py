"""ZeRO-3 with gradient accumulation and activation checkpointing: nothing wrong here.

    deepspeed --num_gpus 2 examples/zero3_checkpointed.py
"""
import deepspeed
import torch
from torch.utils.checkpoint import checkpoint

from small_model import Model, arguments, batch, say, this_rank, zero_config


class CheckpointedModel(Model):
    def forward(self, x, target):
        x = self.embed(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return (self.head(x) - target).float().pow(2).mean()


args = arguments()
deepspeed.init_distributed("nccl")
rank, device = this_rank()
config = zero_config(3, accumulation=2)
torch.manual_seed(0)
with deepspeed.zero.Init(config_dict_or_path=config):
    model = CheckpointedModel()
engine, _, _, _ = deepspeed.initialize(model=model, config=config)
for step in range(args.steps):
    for micro in range(2):
        loss = engine(*batch(2 * step + micro, rank, device))
        engine.backward(loss)
        engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
torch.distributed.destroy_process_group()
