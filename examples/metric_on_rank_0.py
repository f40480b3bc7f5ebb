"""ZeRO-3: a metric that only rank 0 reduces.

    deepspeed --num_gpus 2 examples/metric_on_rank_0.py --mistake   stops after step 4
    deepspeed --num_gpus 2 examples/metric_on_rank_0.py             the repaired program

Only rank 0 prints, so the whole computation of what it prints was put behind `if rank == 0`, the all_reduce too.
The repair: all ranks reduce, rank 0 prints.
"""
import deepspeed
import torch
import torch.distributed as dist

from small_model import Model, arguments, batch, say, this_rank, zero_config


def log_mean(value):
    dist.all_reduce(value, op=dist.ReduceOp.AVG)
    if rank == 0:
        say(rank, f"mean loss {value.item():.6f}")


args = arguments(mistake="rank 0 reduces alone after step 4")
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
    if step == 4 and (rank == 0 or not args.mistake):
        log_mean(loss.detach().clone())
dist.destroy_process_group()
