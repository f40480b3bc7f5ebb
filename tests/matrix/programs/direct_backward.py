"""loss.backward() in place of engine.backward(loss), for one engine after the other: what this DeepSpeed does with it.

    torchrun --nproc_per_node 2 direct_backward.py 3:bf16 2:bf16 1:bf16 0:bf16 0:fp32 3:fp16

Prints for each stage and type whether the parameters afterwards are those that engine.backward gives, on all ranks.
"""
import argparse
import re

import common  # noqa: F401
import deepspeed
import torch
import torch.distributed as dist

from small_model import Model, batch, say, this_rank, zero_config

parser = argparse.ArgumentParser()
parser.add_argument("cases", nargs="+")
parser.add_argument("--local_rank", type=int, default=0)
args = parser.parse_args()
STEPS = 2
KINDS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
deepspeed.init_distributed("nccl")
rank, device = this_rank()


def config_of(stage, kind):
    config = zero_config(stage)
    del config["bf16"], config["gradient_clipping"]
    config.update(optimizer={"type": "SGD", "params": {"lr": 0.1}}, zero_allow_untested_optimizer=True)
    if kind == "bf16":
        config["bf16"] = {"enabled": True}
    elif kind == "fp16":
        config["fp16"] = {"enabled": True, "initial_scale_power": 4}
    return config


def trained(stage, kind, direct):
    """The parameters after some steps, as one vector."""
    torch.manual_seed(0)
    engine, _, _, _ = deepspeed.initialize(model=Model(), config=config_of(stage, kind))
    for step in range(STEPS):
        loss = engine(*batch(step, rank, device, KINDS[kind]))
        if direct:
            loss.backward()
        else:
            engine.backward(loss)
        engine.step()
    with deepspeed.zero.GatheredParameters(list(engine.module.parameters())):
        return torch.cat([p.detach().flatten().float().cpu() for p in engine.module.parameters()])


def outcome(stage, kind):
    wanted = trained(stage, kind, direct=False)
    try:
        values = trained(stage, kind, direct=True)
    except Exception as error:
        return "%s: %s" % (type(error).__name__, re.sub(r"\s+", " ", str(error))[:120])
    others = [None] * dist.get_world_size()
    dist.all_gather_object(others, values)
    if not all(torch.equal(other, others[0]) for other in others):
        return "ranks differ"
    return "as engine.backward" if torch.allclose(values, wanted) else "other parameters"


for case in args.cases:
    number, _, name = case.partition(":")
    say(rank, f"stage {number} {name}: {outcome(int(number), name)}")
dist.destroy_process_group()
