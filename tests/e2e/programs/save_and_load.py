"""ZeRO-3: a checkpoint saved and loaded on all ranks, and the weights gathered for rank 0's file."""
import os
import tempfile

import deepspeed
import torch
import torch.distributed as dist

from small_model import Model, arguments, batch, say, this_rank, zero_config


def steps(numbers):
    for step in numbers:
        loss = engine(*batch(step, rank, device))
        engine.backward(loss)
        engine.step()
        say(rank, f"step {step} loss {loss.item():.6f}")


args = arguments()
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
config = zero_config(3)
config["zero_optimization"]["stage3_gather_16bit_weights_on_model_save"] = True
with deepspeed.zero.Init(config_dict_or_path=config):
    model = Model()
engine, _, _, _ = deepspeed.initialize(model=model, config=config)
folder = [tempfile.mkdtemp(dir=".") if rank == 0 else None]
dist.broadcast_object_list(folder)
steps(range(args.steps // 2))
engine.save_checkpoint(folder[0], tag="half", client_state={"step": args.steps // 2})
engine.save_16bit_model(os.path.join(folder[0], "weights"))
path, state = engine.load_checkpoint(folder[0], tag="half")
assert path is not None and state["step"] == args.steps // 2
steps(range(state["step"], args.steps))
dist.barrier()
dist.destroy_process_group()
