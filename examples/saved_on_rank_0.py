"""ZeRO-3: a checkpoint saved on rank 0 only.

    deepspeed --num_gpus 2 examples/saved_on_rank_0.py --mistake    stops after step 3
    deepspeed --num_gpus 2 examples/saved_on_rank_0.py              the repaired program

Under ZeRO every rank holds a part of the parameters and of the optimizer's states, and saves it; save_checkpoint
waits for all ranks.
The repair: all ranks call save_checkpoint.
"""
import tempfile

import deepspeed
import torch
import torch.distributed as dist

from small_model import Model, arguments, batch, say, this_rank, zero_config

args = arguments(mistake="rank 0 saves alone after step 3")
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
with deepspeed.zero.Init(config_dict_or_path=zero_config(3)):
    model = Model()
engine, _, _, _ = deepspeed.initialize(model=model, config=zero_config(3))
folder = [tempfile.mkdtemp() if rank == 0 else None]
dist.broadcast_object_list(folder)


def save():
    engine.save_checkpoint(folder[0])


for step in range(args.steps):
    loss = engine(*batch(step, rank, device))
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
    if step == 3 and (rank == 0 or not args.mistake):
        save()
dist.destroy_process_group()
