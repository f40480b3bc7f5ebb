"""ZeRO-3: the whole model is gathered in the host memory of rank 0 when it is saved, which has no room for it.

    dshang dry-run -n 2 --gpu t4-16g -- deepspeed --num_gpus 2 examples/gathered_save.py --mistake
    dshang dry-run -n 2 --gpu t4-16g -- deepspeed --num_gpus 2 examples/gathered_save.py    the repaired program

With stage3_gather_16bit_weights_on_model_save, save_16bit_model (and every save_checkpoint of a trainer that calls it)
copies all weights to the host of rank 0.  Where a container has no room for that copy, the kernel's OOM killer ends
the process, with exit status -9 and no message; it is no out-of-memory error of the device.
The repair: each rank saves its part; zero_to_fp32.py puts them together where there is room.
"""
import os
import tempfile

import deepspeed
import torch
import torch.distributed as dist

from memory_model import Model, config, samples
from small_model import arguments, say, this_rank

args = arguments(mistake="the weights are gathered on rank 0")
deepspeed.init_distributed("nccl")
rank, device = this_rank()
settings = config(3, 4)
settings["zero_optimization"]["stage3_gather_16bit_weights_on_model_save"] = args.mistake
with deepspeed.zero.Init(config_dict_or_path=settings):
    model = Model()
engine, _, _, _ = deepspeed.initialize(model=model, config=settings)
folder = [tempfile.mkdtemp() if rank == 0 else None]
dist.broadcast_object_list(folder)
for step in range(args.steps):
    engine.backward(engine(samples(4, 256, device)))
    engine.step()
    say(rank, f"step {step} done")
    if step == 3:
        say(rank, f"saves, pid {os.getpid()}")
        engine.save_16bit_model(folder[0]) if args.mistake else engine.save_checkpoint(folder[0])
        say(rank, "saved")
dist.destroy_process_group()
