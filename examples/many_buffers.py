"""ZeRO-3 with parameters and optimizer on an NVMe drive: what the buffers for it take of host memory is more than there is.

    dshang dry-run -n 2 --gpu t4-16g -- deepspeed --num_gpus 2 examples/many_buffers.py --mistake
    dshang dry-run -n 2 --gpu t4-16g -- deepspeed --num_gpus 2 examples/many_buffers.py    the repaired program

Each rank pins buffer_count buffers of buffer_size elements (100 million by default) of offload_param, whatever the model needs.
The repair: buffer_size is what the largest weight needs, and buffer_count what is read ahead.
It needs DeepSpeed's op async_io (libaio-dev, a compiler, a CUDA toolkit's headers).
"""
import os
import shutil
import tempfile

import deepspeed
import torch
import torch.distributed as dist

from memory_model import WIDTH, Model, config, samples
from small_model import arguments, say, this_rank

args = arguments(mistake="buffers of the default size, and many")
deepspeed.init_distributed("nccl")
rank, device = this_rank()
folder = [tempfile.mkdtemp(dir=os.getcwd()) if rank == 0 else None]
dist.broadcast_object_list(folder)
settings = config(3, 4)
settings["zero_force_ds_cpu_optimizer"] = False
buffers = {"buffer_count": 16} if args.mistake else {"buffer_count": 6, "buffer_size": 4 * WIDTH * WIDTH}
settings["zero_optimization"].update(
    offload_param={"device": "nvme", "nvme_path": folder[0], "pin_memory": True, **buffers},
    offload_optimizer={"device": "nvme", "nvme_path": folder[0], "pin_memory": True})
say(rank, f"starts, pid {os.getpid()}")
with deepspeed.zero.Init(config_dict_or_path=settings):
    model = Model(blocks=1)                  # what goes to the drive and back in each step
engine, _, _, _ = deepspeed.initialize(model=model, config=settings)
for step in range(args.steps):
    engine.backward(engine(samples(4, 256, device)))
    engine.step()
    say(rank, f"step {step} done")
dist.barrier()
if rank == 0:
    shutil.rmtree(folder[0])
dist.destroy_process_group()
