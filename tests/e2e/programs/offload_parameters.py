"""ZeRO-3 with parameters and the optimizer's states in host memory, in fp16 with dynamic loss scaling."""
import deepspeed
import torch

from small_model import Model, arguments, batch, say, this_rank, zero_config

args = arguments()
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
config = zero_config(3)
del config["bf16"]
config["fp16"] = {"enabled": True, "initial_scale_power": 8}
for what in ("param", "optimizer"):
    config["zero_optimization"]["offload_" + what] = {"device": "cpu", "pin_memory": True}
config["zero_force_ds_cpu_optimizer"] = False                       # torch's AdamW: no compiled extension needed
engine, _, _, _ = deepspeed.initialize(model=Model(), config=config)
for step in range(args.steps):
    loss = engine(*batch(step, rank, device, torch.float16))
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
assert engine.skipped_steps == 0, f"{engine.skipped_steps} steps were skipped"
torch.distributed.destroy_process_group()
