"""Ranks of small torch jobs with one mistake each, for tests/bench/latency.py.

Imports torch once and then makes the two ranks of every job by fork.  Commands come as lines on standard input:

    {"fault": ..., "variables": {...}, "seed": ...}     two ranks begin; the answer is "begun"
    end                                                 they are killed if they are still there; the answer is "ended"

Each rank writes to stderr, with a time of CLOCK_MONOTONIC in nanoseconds:

    CALLS <rank> <time>                 just before it makes the call that does not fit
    RAISED <rank> <time> <message>      it got an exception
"""
import json
import os
import random
import signal
import sys
import time

import deepspeed
import torch
import torch.distributed as dist

WORLD = 2
STEPS, PERIOD = 16, 0.05        # of healthy training before, so that everything is watched
WIDTHS = (64, 96, 32, 128)      # of the ZeRO-3 model's blocks


def write(*words):
    os.write(2, (" ".join(map(str, words)) + "\n").encode())


def calls(rank):
    write("CALLS", rank, time.monotonic_ns())


def size(rank, numbers, _):
    wrong = torch.ones(8 + 8 * rank, device="cuda")
    calls(rank)
    dist.all_reduce(wrong)


def collective(rank, numbers, _):
    calls(rank)
    dist.all_reduce(numbers) if rank == 0 else dist.broadcast(numbers, 0)


def root(rank, numbers, _):
    calls(rank)
    dist.broadcast(numbers, rank)


def reduce_op(rank, numbers, _):
    calls(rank)
    dist.all_reduce(numbers, dist.ReduceOp.SUM if rank == 0 else dist.ReduceOp.MAX)


def opposite_order(rank, numbers, groups):
    for group in groups if rank == 0 else reversed(groups):
        calls(rank)
        dist.all_reduce(numbers, group=group)
        torch.cuda.synchronize()


def killed(rank, numbers, _):
    if rank == 1:
        calls(rank)
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(numbers)


FAULTS = {function.__name__.replace("_", " "): function
          for function in (size, collective, root, reduce_op, opposite_order, killed)}
ZERO3 = "skipped block"


def plain(rank, fault, chance):
    numbers = torch.ones(1024, device="cuda")
    groups = [dist.new_group([0, 1]) for _ in range(2)]
    for step in range(STEPS):
        dist.all_reduce(numbers)
        for group in groups:
            dist.all_reduce(numbers, group=group)
        torch.cuda.synchronize()
        time.sleep(PERIOD)
    wait_apart(rank, chance)
    FAULTS[fault](rank, numbers, groups)


def zero3(rank, chance):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = torch.nn.ModuleList(torch.nn.Linear(16, width) for width in WIDTHS)
            self.back = torch.nn.ModuleList(torch.nn.Linear(width, 16) for width in WIDTHS)
            self.skip = None

        def forward(self, x):
            for number, (block, back) in enumerate(zip(self.blocks, self.back)):
                if self.skip is not None and number >= 1:
                    if number == 1:
                        wait_apart(rank, chance)
                    if self.skip and number == 1:
                        continue
                    if number == 1 + self.skip:
                        calls(rank)
                x = back(block(x))
            return x.float().pow(2).mean()

    config = {"train_micro_batch_size_per_gpu": 1, "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
              "bf16": {"enabled": True}, "steps_per_print": 10 ** 9,
              "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0, "stage3_prefetch_bucket_size": 0}}
    with deepspeed.zero.Init(config_dict_or_path=config):
        model = Model()
    engine, _, _, _ = deepspeed.initialize(model=model, config=config)
    for step in range(STEPS // 4):
        if step == STEPS // 4 - 1:
            model.skip = rank == 1
        engine.backward(engine(torch.ones(1, 16, dtype=torch.bfloat16, device="cuda")))
        engine.step()
        time.sleep(PERIOD)


def wait_apart(rank, chance):
    """So long that the fault meets the monitor at any moment, and one rank comes later than the other."""
    moments = [chance.uniform(0, 0.1), chance.uniform(0.02, 0.3)]
    time.sleep(moments[0] + (moments[1] if rank == 1 else 0))


def play(rank, command):
    os.environ.update(command["variables"], RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(WORLD))
    dist.set_debug_level_from_env()
    chance = random.Random(command["seed"])
    torch.cuda.set_device(rank)
    try:
        if command["fault"] == ZERO3:
            deepspeed.init_distributed("nccl", verbose=False)
            zero3(rank, chance)
        else:
            dist.init_process_group("nccl")
            plain(rank, command["fault"], chance)
        torch.cuda.synchronize()
    except Exception as error:      # the bench wants to know when, whatever it is
        write("RAISED", rank, time.monotonic_ns(), str(error).splitlines()[0])
    time.sleep(600)                 # the bench ends it


def main():
    ranks = []
    for line in sys.stdin:
        if line.strip() == "end":
            for pid in ranks:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            ranks = []
            print("ended", flush=True)
            continue
        command = json.loads(line)
        for rank in range(WORLD):
            pid = os.fork()
            if pid == 0:
                try:
                    play(rank, command)
                finally:
                    os._exit(1)
            ranks.append(pid)
        print("begun", flush=True)


if __name__ == "__main__":
    print("ready", flush=True)
    main()
