"""ZeRO-2 with the optimizer's states in host memory, and gradient accumulation."""
import deepspeed
import torch

from small_model import Model, arguments, batch, say, this_rank, zero_config

args = arguments()
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
config = zero_config(2, accumulation=2)
config["zero_optimization"]["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
config["zero_force_ds_cpu_optimizer"] = False                       # torch's AdamW: no compiled extension needed
engine, _, _, _ = deepspeed.initialize(model=Model(), config=config)
for step in range(args.steps):
    for micro in range(2):
        loss = engine(*batch(2 * step + micro, rank, device))
        engine.backward(loss)
        engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
torch.distributed.destroy_process_group()
