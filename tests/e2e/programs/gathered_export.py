"""FSDP2 with gradient accumulation, a norm clipped over all ranks, and a full state dict gathered on all, written by rank 0."""
import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import fully_shard

from small_model import Model, arguments, batch, say, this_rank

args = arguments()
rank, device = this_rank()
dist.init_process_group("nccl", device_id=device)
torch.manual_seed(0)
model = Model().to(device)
for block in model.blocks:
    fully_shard(block)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(args.steps):
    for micro in range(2):
        model.set_requires_gradient_sync(micro == 1)
        loss = model(*batch(2 * step + micro, rank, device, torch.float32))
        (loss / 2).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    say(rank, f"step {step} loss {loss.item():.6f}")
    if step % 3 == 2:
        whole = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
        if rank == 0:
            torch.save(whole, f"step_{step}.pt")
dist.barrier()
dist.destroy_process_group()
