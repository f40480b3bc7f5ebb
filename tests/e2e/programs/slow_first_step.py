"""ZeRO-3: in the first step rank 1 waits for a compiler, for longer than the stall threshold of its test."""
import subprocess
import sys

import deepspeed
import torch

from small_model import Model, arguments, batch, say, this_rank, zero_config

COMPILER = "import time\nend = time.monotonic() + 6\nwhile time.monotonic() < end: hash(end)"


class CompiledModel(Model):
    compiled = False

    def forward(self, x, target):
        if not self.compiled:
            self.compiled = True
            if rank == 1:
                subprocess.run([sys.executable, "-c", COMPILER], check=True)
        return super().forward(x, target)


args = arguments()
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
with deepspeed.zero.Init(config_dict_or_path=zero_config(3)):
    model = CompiledModel()
engine, _, _, _ = deepspeed.initialize(model=model, config=zero_config(3))
for step in range(args.steps):
    loss = engine(*batch(step, rank, device))
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
torch.distributed.destroy_process_group()
