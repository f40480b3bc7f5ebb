"""DDP: an evaluation keeps its outputs on the card until the card is full.

    dshang dry-run -n 2 --gpu t4-16g -- torchrun examples/kept_outputs.py --mistake
    dshang dry-run -n 2 --gpu t4-16g -- torchrun examples/kept_outputs.py            the repaired program

The repair: of each output only what is needed is kept, on the host.
"""
import torch
from torch.nn.parallel import DistributedDataParallel

from memory_model import WithHead, samples
from small_model import arguments, say, this_rank

args = arguments(mistake="outputs are kept on the card")
rank, device = this_rank()
torch.distributed.init_process_group("nccl")
model = DistributedDataParallel(WithHead().to(device, torch.bfloat16), device_ids=[device.index])
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
for step in range(args.steps):
    model(samples(4, 1024, device)).float().pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    say(rank, f"step {step} done")
model.eval()
outputs = []
with torch.no_grad():
    for _ in range(36):
        output = model(samples(8, 1024, device))
        outputs.append(output if args.mistake else output.argmax(-1).cpu())
say(rank, "evaluated")
torch.distributed.destroy_process_group()
