"""FSDP2 (fully_shard), against the same training on the CPU."""
import os

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

import reference
from small_gpt import SmallGpt, batch
from whole_line import say

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
dist.init_process_group("nccl", device_id=device)
torch.manual_seed(0)
model = SmallGpt().cuda()
for block in model.blocks:
    fully_shard(block)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=reference.LEARNING_RATE)
for step, wanted in enumerate(reference.train(world)):
    loss = model(batch(rank * 100).cuda())
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), reference.CLIP).full_tensor()
    optimizer.step()
    optimizer.zero_grad()
    reference.check(rank, step, loss.item(), norm.item(), wanted)
dist.destroy_process_group()
say("training right")
