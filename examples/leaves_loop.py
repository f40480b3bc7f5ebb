"""ZeRO-3: one rank leaves the training loop before the others.

    deepspeed --num_gpus 2 examples/leaves_loop.py --mistake        stops in step 4
    deepspeed --num_gpus 2 examples/leaves_loop.py                  the repaired program

A rank stops by a criterion that only it can see (its own loss, its own clock) and waits at the end of the program; the
others wait for it in the next step.
The repair: all ranks decide together.
"""
import deepspeed
import torch
import torch.distributed as dist

from small_model import Model, arguments, batch, say, this_rank, zero_config

args = arguments(mistake="rank 1 breaks out of the loop after step 3")
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
with deepspeed.zero.Init(config_dict_or_path=zero_config(3)):
    model = Model()
engine, _, _, _ = deepspeed.initialize(model=model, config=zero_config(3))


def enough(step):
    mine = rank == 1 and step >= 3
    if args.mistake:
        return mine
    everybody = torch.tensor([int(mine and step == args.steps - 1)], device=device)
    dist.all_reduce(everybody, op=dist.ReduceOp.MAX)
    return bool(everybody.item())


for step in range(args.steps):
    loss = engine(*batch(step, rank, device))
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
    if enough(step):
        break
dist.barrier()
dist.destroy_process_group()
