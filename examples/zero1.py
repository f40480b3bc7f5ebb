"""ZeRO-1: nothing wrong here.

    deepspeed --num_gpus 2 examples/zero1.py
"""
import deepspeed
import torch

from small_model import Model, arguments, batch, say, this_rank, zero_config

args = arguments()
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
engine, _, _, _ = deepspeed.initialize(model=Model(), config=zero_config(1))
for step in range(args.steps):
    loss = engine(*batch(step, rank, device))
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
torch.distributed.destroy_process_group()
