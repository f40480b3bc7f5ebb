"""ZeRO-2: the activations of the first step do not fit, although `activation_checkpointing` is in the configuration.

    dshang dry-run -n 2 --gpu t4-16g -- deepspeed --num_gpus 2 examples/first_step_too_large.py --mistake
    dshang dry-run -n 2 --gpu t4-16g -- deepspeed --num_gpus 2 examples/first_step_too_large.py    the repaired program

The block only sets how DeepSpeed's own checkpointing works, for a model that calls it.
The repair: the model checkpoints its blocks.
"""
import deepspeed
import torch

from memory_model import Model, config, samples
from small_model import arguments, say, this_rank

BATCH, LENGTH = 16, 8192

args = arguments(mistake="the model does not checkpoint its blocks")
deepspeed.init_distributed("nccl")
rank, device = this_rank()
with torch.device(device):
    model = Model(checkpointing=not args.mistake)
engine, _, _, _ = deepspeed.initialize(
    model=model, config=config(2, BATCH, activation_checkpointing={"partition_activations": False}))
for step in range(min(args.steps, 3)):
    engine.backward(engine(samples(BATCH, LENGTH, device)))
    engine.step()
    say(rank, f"step {step} done")
torch.distributed.destroy_process_group()
