"""A tiny job whose ds_config is the JSON text of its last argument."""
import json
import sys
import time

import deepspeed
import torch
import torch.distributed as dist

deepspeed.init_distributed()
model = torch.nn.Linear(16, 16)
time.sleep(1)                # as a program takes that reads its model; the probe is armed meanwhile
engine, *_ = deepspeed.initialize(model=model, config=json.loads(sys.argv[-1]))
for step in range(3):
    loss = engine(torch.randn(2, 16, device=engine.device, dtype=engine.module.weight.dtype)).float().pow(2).mean()
    engine.backward(loss)
    engine.step()
sys.stdout.write(f"rank {dist.get_rank()} has trained\n")        # one write: ranks share the log
sys.stdout.flush()
