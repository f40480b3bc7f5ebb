"""ZeRO-3 with NVMe offload whose path is no NVMe drive: what is offloaded fills the memory that it should spare.

    dshang dry-run -n 2 --gpu t4-16g -- deepspeed --num_gpus 2 examples/offloaded_to_memory.py --mistake
    dshang dry-run -n 2 --gpu t4-16g -- deepspeed --num_gpus 2 examples/offloaded_to_memory.py    the repaired program

In a container /dev/shm, and often /tmp, lies in memory and counts against its limit.  The kernel's OOM killer ends a rank,
with exit status -9 and no message.  The program needs DeepSpeed's compiled async_io (libaio).
The repair: `nvme_path` lies on a drive of the machine.
"""
import os
import shutil

import deepspeed
import torch.distributed as dist

from memory_model import Model, config, samples
from small_model import arguments, say, this_rank

args = arguments(mistake="what is offloaded goes to /dev/shm")
deepspeed.init_distributed("nccl")
rank, device = this_rank()
path = os.path.join("/dev/shm" if args.mistake else "/var/tmp", "offloaded-%d" % os.getppid())
settings = config(3, 4)
settings["zero_optimization"].update(
    stage3_param_persistence_threshold=0,
    offload_optimizer={"device": "cpu"},
    offload_param={"device": "nvme", "nvme_path": path, "buffer_size": 4 << 20, "buffer_count": 8, "max_in_cpu": 0})
settings["zero_force_ds_cpu_optimizer"] = False                       # torch's AdamW: no more compiled extensions
try:
    with deepspeed.zero.Init(config_dict_or_path=settings):
        model = Model()
    engine, _, _, _ = deepspeed.initialize(model=model, config=settings)
    for step in range(args.steps):
        engine.backward(engine(samples(4, 256, device)))
        engine.step()
        say(rank, f"step {step} done, pid {os.getpid()}")
    dist.destroy_process_group()
finally:
    shutil.rmtree(path, ignore_errors=True)
