"""DDP: a server that generates samples runs on the card of rank 1, and takes most of it.

    dshang dry-run -n 2 --gpu t4-16g -- torchrun examples/server_on_the_card.py --mistake
    dshang dry-run -n 2 --gpu t4-16g -- torchrun examples/server_on_the_card.py            the repaired program

It is a process of its own, as inference servers are, and takes a share of the card when it starts.
The repair: the share is what the training leaves.
"""
import os
import subprocess
import sys

import torch
from torch.nn.parallel import DistributedDataParallel

from memory_model import Model, samples
from small_model import arguments, say, this_rank

SERVER = """
import sys
import torch
card, share = int(sys.argv[1]), float(sys.argv[2])
torch.cuda.set_device(card)
cache = torch.empty(int(share * torch.cuda.get_device_properties(card).total_memory), dtype=torch.uint8, device="cuda")
print("ready", flush=True)
sys.stdin.read()                    # until the training has ended
"""


def start_server(card, share):
    env = {name: value for name, value in os.environ.items() if name not in ("RANK", "LOCAL_RANK", "WORLD_SIZE")}
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(card), str(share)], env=env, text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdout.readline() == "ready\n"
    return server


args = arguments(mistake="the server takes 70 % of the card, not 20 %")
rank, device = this_rank()
torch.distributed.init_process_group("nccl")
server = start_server(device.index, 0.7 if args.mistake else 0.2) if rank == 1 else None
model = DistributedDataParallel(Model().to(device, torch.bfloat16), device_ids=[device.index])
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
for step in range(args.steps):
    model(samples(32, 1024, device)).backward()
    optimizer.step()
    optimizer.zero_grad()
    say(rank, f"step {step} done")
torch.distributed.destroy_process_group()
if server:
    server.communicate()
