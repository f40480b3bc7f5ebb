"""FSDP2, each block sharded on its own.  With --mistake rank 1 leaves out a block from step 4 on."""
import common  # noqa: F401
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from small_model import BATCH, WIDTH, Model, arguments, say, this_rank


class SkippingModel(Model):
    skip_now = False

    def forward(self, x, target):
        x = self.embed(x)
        for number, block in enumerate(self.blocks):
            if not (self.skip_now and number == 5):
                x = block(x)
        return (self.head(x) - target).float().pow(2).mean()


args = arguments(mistake="rank 1 leaves out a block, from step 4 on")
rank, device = this_rank()
dist.init_process_group("nccl", device_id=device)
torch.manual_seed(0)
model = SkippingModel().to(device)
for block in model.blocks:
    fully_shard(block)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
samples = torch.randn(args.steps * BATCH * dist.get_world_size(), WIDTH, generator=torch.Generator().manual_seed(1))
data = TensorDataset(samples, samples * 0.5)
for step, (x, target) in enumerate(DataLoader(data, batch_size=BATCH, sampler=DistributedSampler(data))):
    model.skip_now = args.mistake and rank == 1 and step >= 4
    loss = model(x.to(device), target.to(device))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    say(rank, f"step {step} loss {loss.item():.6f}")
dist.destroy_process_group()
