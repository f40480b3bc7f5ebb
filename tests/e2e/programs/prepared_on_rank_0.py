"""ZeRO-1: rank 0 prepares the data, for longer than its test's stall threshold; the others wait in a barrier."""
import time

import deepspeed
import torch
import torch.distributed as dist

from small_model import Model, arguments, batch, say, this_rank, zero_config

SECONDS = 6


def prepare():
    words, end = {}, time.monotonic() + SECONDS
    while time.monotonic() < end:
        for number in range(10_000):
            words["word %d" % number] = words.get("word %d" % number, 0) + 1
    return words


args = arguments()
deepspeed.init_distributed("nccl")
rank, device = this_rank()
if rank == 0:
    say(rank, "prepared %d words" % len(prepare()))
dist.barrier()
torch.manual_seed(0)
engine, _, _, _ = deepspeed.initialize(model=Model(), config=zero_config(1))
for step in range(args.steps):
    loss = engine(*batch(step, rank, device))
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
dist.destroy_process_group()
