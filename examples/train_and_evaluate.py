"""ZeRO-3, evaluating between training steps, and a checkpoint: nothing wrong here.

    deepspeed --num_gpus 2 examples/train_and_evaluate.py
"""
import os
import tempfile

import deepspeed
import torch
import torch.distributed as dist

from small_model import Model, arguments, batch, say, this_rank, zero_config

args = arguments()
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
with deepspeed.zero.Init(config_dict_or_path=zero_config(3)):
    model = Model()
engine, _, _, _ = deepspeed.initialize(model=model, config=zero_config(3))
for step in range(args.steps):
    loss = engine(*batch(step, rank, device))
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
    if step % 2 == 1:
        engine.eval()
        with torch.no_grad():
            losses = [engine(*batch(10_000 + number, rank, device)) for number in range(2)]
        mean = torch.stack(losses).mean()
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        say(rank, f"step {step} evaluation {mean.item():.6f}")
        engine.train()
folder = [tempfile.mkdtemp() if rank == 0 else None]
dist.broadcast_object_list(folder)
engine.save_checkpoint(folder[0])
say(rank, f"saved {len(os.listdir(folder[0]))} entries")
dist.barrier()
dist.destroy_process_group()
