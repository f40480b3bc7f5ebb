"""ZeRO-1: every rank trains on the same batches.

    deepspeed --num_gpus 2 examples/same_batches.py --mistake       runs, and learns from half of the data
    deepspeed --num_gpus 2 examples/same_batches.py                 the repaired program

All ranks shuffle the whole data set with the same seed, so that two GPUs do what one would have done.
The repair: a DistributedSampler.
"""
import deepspeed
import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from small_model import BATCH, WIDTH, Model, arguments, say, this_rank, zero_config

args = arguments(mistake="shuffle=True in place of a DistributedSampler")
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
x = torch.randn(args.steps * BATCH * torch.distributed.get_world_size(), WIDTH)
data = TensorDataset(x, 0.5 * x)
if args.mistake:
    loader = DataLoader(data, batch_size=BATCH, shuffle=True)
else:
    loader = DataLoader(data, batch_size=BATCH, sampler=DistributedSampler(data, seed=0, drop_last=True))
engine, _, _, _ = deepspeed.initialize(model=Model(), config=zero_config(1))
for step, (inputs, targets) in zip(range(args.steps), loader):
    loss = engine(inputs.to(device, torch.bfloat16), targets.to(device, torch.bfloat16))
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
torch.distributed.destroy_process_group()
