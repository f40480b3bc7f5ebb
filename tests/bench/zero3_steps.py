"""One rank of a ZeRO-3 job whose steps cost host time only: blocks of steps with and without the probe, in turns.

    zero3_steps.py BLOCKS STEPS     rank 0 prints {"on": [[(elapsed ms, CPU ms) a step, ...] a block, ...], "off": ...,
                                    "counted": {what: (times a step, us each), ...}}

The probe is taken off and put on again in one process, so that everything else is equal; the first two steps of each
block (in which the probe learns the names anew, and DeepSpeed's trace may be recorded) are not counted.  CPU time is
that of the threads that run Python: the main thread and autograd's, not those of the simulated GPU.  `counted` is what
the probe does in a step, counted, and what each of these things takes alone: a loaded machine hardly moves it."""
import collections
import gc
import json
import os
import sys
import time

import torch
import deepspeed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

NOT_COUNTED, WARM_UP = 2, 8
WIDTH, LAYERS, BATCH = 64, 12, 4


class Block(nn.Module):
    """The modules of a transformer's layer, small: the host's work does not depend on sizes."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.norm_2 = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        y = self.norm(x)
        x = x + self.out(self.query(y) * self.key(y) + self.value(y))
        return x + self.down(nn.functional.gelu(self.up(self.norm_2(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x).float().pow(2).mean()


def cpu_ms():
    total = 0
    for thread in os.listdir("/proc/self/task"):
        try:
            with open("/proc/self/task/%s/comm" % thread) as file:
                of_python = thread == str(os.getpid()) or file.read().startswith("pt_autograd")
            if of_python:
                with open("/proc/self/task/%s/schedstat" % thread) as file:
                    total += int(file.read().split()[0])
        except FileNotFoundError:                                    # a thread that ended meanwhile
            continue
    return total / 1e6


class Counting:
    """The native side, with a count of its calls."""

    def __init__(self, native):
        self.native, self.counts = native, collections.Counter()

    def __getattr__(self, name):
        function = getattr(self.native, name)

        def call(*args):
            self.counts[name] += 1
            return function(*args)
        return call


def alone_us(function, times=2000):
    """CPU time of one call, the best of several rounds."""
    best = float("inf")
    for _ in range(5):
        begin = time.thread_time()
        for _ in range(times):
            function()
        best = min(best, (time.thread_time() - begin) / times)
    return 1e6 * best


def counted(probe, native, step, module, coordinator):
    """{what: (times a step, us each)} of visits, gathers, phases and samples of memory."""
    probe.disarm()
    counting = Counting(native)
    assert probe.arm(counting)
    samples = collections.Counter()
    memory = type(probe._arming.probe.memory)
    original = memory._sample
    memory._sample = lambda self, *phase: samples.update(["memory"]) or original(self, *phase)
    for _ in range(4):
        counting.counts.clear(), samples.clear()
        step()
    memory._sample = original
    probe.disarm()
    assert probe.arm(native)
    step()
    parts = probe._arming.probe
    params = set(module.parameters())

    def without(coordinator, what, forward):
        pass
    fetch, gather = parts.zero3._around_fetch(without), parts.zero3._around_gather(without)
    phase = parts.phases.around("forward")(lambda: None)
    costs = {
        "visit": alone_us(lambda: fetch(coordinator, module, forward=True)),
        "gather": alone_us(lambda: gather(coordinator, params, forward=True)) * step.parameters / len(params),
        "phase_push": alone_us(phase), "memory": alone_us(lambda: parts.memory.sample("forward"), 200)}
    costs.update(looks(parts, torch.zeros((), device="cuda")))
    counts = counting.counts + samples
    counts.update(name for name in costs if name.startswith("look"))      # a loss, a norm and a batch a step
    counts["gather"] = min(counts["gather"], 1)          # one bundle of all parameters, or the same ones in pieces
    return {name: (counts[name], cost) for name, cost in costs.items()}


def look_us(look, poll, rounds=20, times=100):
    """CPU time of starting one look and of reading what came of it; waiting for the device is not part of it."""
    best = float("inf")
    for _ in range(rounds):
        begin = time.thread_time()
        for _ in range(times):
            look()
        spent = time.thread_time() - begin
        torch.cuda.synchronize()
        begin = time.thread_time()
        poll()
        best = min(best, (spent + time.thread_time() - begin) / times)
    return 1e6 * best


def looks(parts, number):
    """What a loss, a norm and a batch take."""
    numbers, poll = parts.numbers, parts.later.poll
    batch = [torch.randn(BATCH, WIDTH)]
    return {"look at a loss": look_us(lambda: numbers.loss(number), poll),
            "look at a norm": look_us(lambda: numbers.norm(number), poll),
            "look at a batch": alone_us(lambda: parts.inputs.batch(batch, 0, True), 200)}


def armed_probe(seconds=10):
    """The library arms it from a thread of its own, soon after the first use of the device."""
    end = time.monotonic() + seconds
    while "dshang_probe" not in sys.modules and time.monotonic() < end:
        time.sleep(0.01)
    return sys.modules["dshang_probe"]


def main(blocks, steps):
    rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    device = torch.device("cuda", local)
    deepspeed.init_distributed("nccl")
    probe = armed_probe()
    config = {"train_micro_batch_size_per_gpu": BATCH, "bf16": {"enabled": True}, "steps_per_print": 10 ** 9,
              "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
              "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0}}
    with deepspeed.zero.Init(config_dict_or_path=config):
        model = Model()
    engine, _, _, _ = deepspeed.initialize(model=model, config=config)
    data = TensorDataset(torch.randn(BATCH * (blocks * steps + WARM_UP), WIDTH))
    batches = iter(DataLoader(data, batch_size=BATCH))
    native = probe._arming.probe.native
    figures = {"on": [], "off": []}
    gc.disable()
    for _ in range(WARM_UP):
        x, = next(batches)
        engine.backward(engine(x.to(device, torch.bfloat16)))
        engine.step()
    for block in range(blocks):
        way = ("on", "off")[block % 2 ^ (block // 2) % 2]            # on off off on ...: a drift falls on both
        if way == "off":
            probe.disarm()
        elif probe._arming is None:
            assert probe.arm(native)
        figures[way].append([])
        for step in range(steps):
            begin, cpu = time.perf_counter(), cpu_ms()
            x, = next(batches)
            engine.backward(engine(x.to(device, torch.bfloat16)))
            engine.step()
            if step >= NOT_COUNTED:
                figures[way][-1].append((1e3 * (time.perf_counter() - begin), cpu_ms() - cpu))
        gc.collect()

    def step():
        engine.backward(engine(x.to(device, torch.bfloat16)))
        engine.step()
    step.parameters = len(list(model.parameters()))
    coordinator = engine.optimizer.parameter_offload.get_param_coordinator()
    figures["counted"] = counted(probe, native, step, model.blocks[3].up, coordinator)
    if rank == 0:
        print(json.dumps(figures))
    torch.distributed.destroy_process_group()


main(int(sys.argv[1]), int(sys.argv[2]))
