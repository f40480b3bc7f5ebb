"""One rank of a ZeRO-3 job whose steps cost host time only: blocks of steps with and without the probe, in turns.

    zero3_steps.py BLOCKS STEPS     rank 0 prints {"on": [ms a step, ...], "off": [...], "cpu_on": ..., "cpu_off": ...}

The probe is taken off and put on again in one process, so that everything else is equal; the first two steps of each
block (in which the probe learns the names anew, and DeepSpeed's trace may be recorded) are not counted."""
import gc
import json
import os
import sys
import time

import torch
import deepspeed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

NOT_COUNTED = 2
WIDTH, LAYERS, BATCH = 64, 24, 4


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


def main(blocks, steps):
    rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    device = torch.device("cuda", local)
    deepspeed.init_distributed("nccl")
    probe = sys.modules["dshang_probe"]
    config = {"train_micro_batch_size_per_gpu": BATCH, "bf16": {"enabled": True}, "steps_per_print": 10 ** 9,
              "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
              "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0}}
    with deepspeed.zero.Init(config_dict_or_path=config):
        model = Model()
    engine, _, _, _ = deepspeed.initialize(model=model, config=config)
    data = TensorDataset(torch.randn(BATCH * (blocks * steps + 1), WIDTH))
    batches = iter(DataLoader(data, batch_size=BATCH))
    native = probe._arming.probe.native
    figures = {"on": [], "off": [], "cpu_on": [], "cpu_off": []}
    gc.disable()
    for block in range(blocks):
        way = ("on", "off")[block % 2 ^ (block // 2) % 2]            # on off off on ...: a drift falls on both
        if way == "off":
            probe.disarm()
        elif probe._arming is None:
            assert probe.arm(native)
        for step in range(steps):
            begin, cpu = time.perf_counter(), time.process_time()
            x, = next(batches)
            engine.backward(engine(x.to(device, torch.bfloat16)))
            engine.step()
            if step >= NOT_COUNTED:
                figures[way].append(1e3 * (time.perf_counter() - begin))
                figures["cpu_" + way].append(1e3 * (time.process_time() - cpu))
        gc.collect()
    if rank == 0:
        print(json.dumps(figures))
    torch.distributed.destroy_process_group()


main(int(sys.argv[1]), int(sys.argv[2]))
