"""DeepSpeed's pipeline engine: two stages, two micro-batches a step."""
import itertools

import deepspeed
import torch
from deepspeed.pipe import LayerSpec, PipelineModule
from torch import nn

from small_model import WIDTH, Block, arguments, batch, say, this_rank, zero_config

MICRO = 2


def endless(replica, device):
    """Batches of one replica, the same on both of its stages."""
    for number in itertools.count():
        yield batch(number, replica, device)


def distance(x, target):
    return (x - target).float().pow(2).mean()


args = arguments()
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
layers = [LayerSpec(nn.Linear, WIDTH, WIDTH), *(LayerSpec(Block) for _ in range(6)), LayerSpec(nn.Linear, WIDTH, WIDTH)]
model = PipelineModule(layers, num_stages=2, loss_fn=distance, partition_method="uniform")
engine, _, _, _ = deepspeed.initialize(model=model, config=zero_config(1, accumulation=MICRO))
batches = endless(engine.grid.get_data_parallel_rank(), device)
for step in range(args.steps):
    loss = engine.train_batch(batches)
    say(rank, f"step {step} loss {loss.item():.6f}")
torch.distributed.destroy_process_group()
