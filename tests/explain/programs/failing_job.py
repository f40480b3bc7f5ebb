"""failing_job.py MISTAKE: a small training job that fails; record_jobs.py tells how it is started.

With torch.distributed alone, or with DeepSpeed (wrong_batch, borrowed_weight).
"""
import argparse
import os
import signal
import time
from datetime import timedelta

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("mistake")
parser.add_argument("--local_rank", type=int, default=0)
mistake = parser.parse_args().mistake
rank = int(os.environ["RANK"])
STEPS = 8


def train_plainly():
    """Gradients are averaged by hand; the mistake is made in step 5."""
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", timeout=timedelta(seconds=15))
    weights = torch.ones(1000, device="cuda")
    for step in range(1, STEPS + 1):
        gradients = torch.full_like(weights, 0.5)
        if step == 5 and rank == 1:
            make_mistake(weights)
        dist.all_reduce(gradients)
        torch.cuda.synchronize()
        print(f"step {step} loss: {3 - step / 10}", flush=True)
    dist.destroy_process_group()


def make_mistake(weights):
    if mistake == "other_call":
        dist.all_gather_into_tensor(torch.ones(3000, device="cuda"), weights)
    elif mistake == "slow":
        time.sleep(45)
    elif mistake == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif mistake == "raises":
        raise LookupError("sample 17 has no label")
    elif mistake == "full_disk":
        with open("/dev/full", "wb") as file:
            file.write(b"x" * 100000)


def train_with_deepspeed(config):
    import deepspeed
    model = torch.nn.Linear(64, 64)
    engine = deepspeed.initialize(model=model, config=config, model_parameters=model.parameters())[0]
    for step in range(1, STEPS + 1):
        batch = torch.ones(2, 64, device=engine.device, dtype=torch.bfloat16)
        if mistake == "borrowed_weight":
            loss = torch.nn.functional.linear(batch, engine.module.weight).mean()
        else:
            loss = engine(batch).mean()
        engine.backward(loss)
        engine.step()
        print(f"step {step} loss: {loss.item()}", flush=True)


ADAM = {"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": True}}}
CONFIGS = {
    "wrong_batch": {**ADAM, "train_batch_size": 7},
    "borrowed_weight": {**ADAM, "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0}},
}
if mistake in CONFIGS:
    train_with_deepspeed(CONFIGS[mistake])
else:
    train_plainly()
