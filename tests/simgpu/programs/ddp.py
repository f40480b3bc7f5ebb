"""DDP with gradient accumulation under no_sync, against the same training on the CPU."""
import os

import torch
import torch.distributed as dist

import reference
from small_gpt import SmallGpt, batch
from whole_line import say

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(SmallGpt().cuda(), device_ids=[torch.cuda.current_device()])
optimizer = torch.optim.AdamW(model.parameters(), lr=reference.LEARNING_RATE)
for step, wanted in enumerate(reference.train(world, accumulate=2)):
    with model.no_sync():
        (model(batch(rank * 100).cuda()) / 2).backward()
    loss = model(batch(rank * 100 + 1).cuda())
    (loss / 2).backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), reference.CLIP)
    optimizer.step()
    optimizer.zero_grad()
    reference.check(rank, step, loss.item(), norm.item(), wanted)
dist.destroy_process_group()
say("training right")
