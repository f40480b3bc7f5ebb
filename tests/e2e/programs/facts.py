"""ZeRO-1 in which ranks differ: `by_design` in their seeds, paths and network interfaces; `config` in their ds_config too."""
import os
import sys

import deepspeed
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "examples"))
from small_model import Model, batch, say, this_rank, zero_config

how = sys.argv[-1]
rank, device = this_rank()
os.environ["NCCL_SOCKET_NTHREADS"] = str(1 + rank)
deepspeed.init_distributed("nccl")
torch.manual_seed(rank)
config = zero_config(1)
config["tensorboard"] = {"enabled": False, "output_path": "/tmp/rank%d" % rank}
if how == "config":
    config["zero_optimization"]["reduce_bucket_size"] = 10 ** 8 * (1 + rank)
engine, _, _, _ = deepspeed.initialize(model=Model(), config=config)
for step in range(4):
    loss = engine(*batch(step, rank, device))
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
torch.distributed.destroy_process_group()
