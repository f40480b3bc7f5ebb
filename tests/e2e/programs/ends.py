"""ZeRO-3 training of which rank 1 ends in step 3: ends.py raise|kill|oom, or nobody (ends.py on)."""
import argparse
import os
import signal
import sys
import time

import deepspeed
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "examples"))
from small_model import Model, batch, say, this_rank, zero_config  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("how", choices=("raise", "kill", "oom", "on"))
parser.add_argument("--local_rank", type=int, default=0)
how = parser.parse_args().how
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
with deepspeed.zero.Init(config_dict_or_path=zero_config(3)):
    model = Model()
engine, _, _, _ = deepspeed.initialize(model=model, config=zero_config(3))


def read_labels():
    raise ValueError("sample without labels")


for step in range(1000):
    if rank == 1 and step == 3:
        say(rank, "ends now")
        if how == "raise":
            read_labels()
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "oom":
            torch.empty(200 * 2 ** 30, dtype=torch.uint8, device=device)
    engine.backward(engine(*batch(step, rank, device)))
    engine.step()
    say(rank, f"step {step} done")
    if how == "on":
        time.sleep(0.2)
