"""ZeRO-2 in fp16: the loss is finite, and the loss scale keeps shrinking.

    deepspeed --num_gpus 2 examples/shrinking_scale.py --mistake --steps 30     ever more steps are skipped
    deepspeed --num_gpus 2 examples/shrinking_scale.py --steps 30               the repaired program

The weight of a regularising part doubles with every step.  The loss itself, in fp32, is finite; its gradients, in fp16, are
so only with an ever smaller scale.
The repair: bf16, which needs no loss scale, and a weight that ends.
"""
import deepspeed
import torch
import torch.distributed as dist

from small_model import Model, arguments, batch, say, this_rank, zero_config

args = arguments(mistake="train in fp16, with a weight that grows without end")
deepspeed.init_distributed("nccl")
rank, device = this_rank()
config = zero_config(2)
if args.mistake:
    del config["bf16"]
    config["fp16"] = {"enabled": True, "initial_scale_power": 14, "hysteresis": 1}
dtype = torch.float16 if args.mistake else torch.bfloat16
torch.manual_seed(0)
engine, _, _, _ = deepspeed.initialize(model=Model(), config=config)
for step in range(args.steps):
    weight = 2.0 ** (step if args.mistake else min(step, 4))
    loss = weight * engine(*batch(0, rank, device, dtype))
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item() / weight:.6f}")
dist.destroy_process_group()
