"""ZeRO-3 with what a real job has: a data loader, accumulation, recomputed blocks, evaluation, saving and loading."""
import os
import tempfile

import common  # noqa: F401
import deepspeed
import torch
import torch.distributed as dist
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from small_model import BATCH, WIDTH, Model, arguments, batch, say, this_rank, zero_config

ACCUMULATION = 2


class CheckpointedModel(Model):
    def forward(self, x, target):
        x = self.embed(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return (self.head(x) - target).float().pow(2).mean()


args = arguments()
deepspeed.init_distributed("nccl")
rank, device = this_rank()
world = dist.get_world_size()
config = zero_config(3, ACCUMULATION)
torch.manual_seed(0)
with deepspeed.zero.Init(config_dict_or_path=config):
    model = CheckpointedModel()
engine, _, _, _ = deepspeed.initialize(model=model, config=config)
samples = torch.randn(args.steps * ACCUMULATION * BATCH * world, WIDTH, generator=torch.Generator().manual_seed(1))
data = TensorDataset(samples, samples * 0.5)
loader = DataLoader(data, batch_size=BATCH, sampler=DistributedSampler(data, world, rank))
for number, (x, target) in enumerate(loader):
    loss = engine(x.to(device, torch.bfloat16), target.to(device, torch.bfloat16))
    engine.backward(loss)
    engine.step()
    if (number + 1) % ACCUMULATION == 0:
        say(rank, f"step {number // ACCUMULATION} loss {loss.item():.6f}")
engine.eval()
with torch.no_grad():
    say(rank, f"step {args.steps - 1} evaluation {engine(*batch(10_000, rank, device)).item():.6f}")
engine.train()
folder = [tempfile.mkdtemp() if rank == 0 else None]
dist.broadcast_object_list(folder)
engine.save_checkpoint(folder[0])
say(rank, f"saved {len(os.listdir(folder[0]))} entries")
try:
    engine.load_checkpoint(folder[0])
    say(rank, "loaded")
except Exception as error:
    say(rank, f"load failed: {type(error).__name__}: {str(error).strip().splitlines()[0].split('. ')[0][:200]}")
dist.barrier()
dist.destroy_process_group()
