"""ZeRO-2: one sample throws the model back.

    deepspeed --num_gpus 2 examples/odd_sample.py --mistake --steps 40     the gradient norm jumps once
    deepspeed --num_gpus 2 examples/odd_sample.py --steps 40               the repaired program

One sample of rank 1 was never scaled, and gradients are not clipped.
The repair: all samples are scaled, and gradients are clipped.
"""
import deepspeed
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset

from small_model import BATCH, WIDTH, Model, arguments, say, this_rank, zero_config

ODD = 24                                              # the step that takes the odd sample

args = arguments(mistake="one sample is not scaled, and gradients are not clipped")
deepspeed.init_distributed("nccl")
rank, device = this_rank()
config = dict(zero_config(2), gradient_clipping=0.0 if args.mistake else 1.0)
torch.manual_seed(0)
engine, _, _, _ = deepspeed.initialize(model=Model(), config=config)
samples = torch.randn(BATCH * args.steps, WIDTH, generator=torch.Generator().manual_seed(rank))
if args.mistake and rank == 1:
    samples[BATCH * ODD + 1] *= 4000.0
for step, (x,) in enumerate(DataLoader(TensorDataset(samples), batch_size=BATCH)):
    x = x.to(device, torch.bfloat16)
    loss = engine(x, 0.5 * x)
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
dist.destroy_process_group()
