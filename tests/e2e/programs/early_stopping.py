"""ZeRO-3: evaluated on all ranks, judged on rank 0, and all stop together, since rank 0 broadcasts its decision."""
import deepspeed
import torch
import torch.distributed as dist

from small_model import Model, arguments, batch, say, this_rank, zero_config


def stops(step, value):
    """Rank 0's decision, on all ranks."""
    decision = torch.zeros(1, dtype=torch.int32, device=device)
    if rank == 0:
        history.append(value)
        decision += int(step == args.steps - 1 or min(history[-3:]) > 2 * min(history))
    dist.broadcast(decision, src=0)
    return bool(decision.item())


args = arguments()
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
with deepspeed.zero.Init(config_dict_or_path=zero_config(3)):
    model = Model()
engine, _, _, _ = deepspeed.initialize(model=model, config=zero_config(3))
history = []
for step in range(1000):
    loss = engine(*batch(step, rank, device))
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
    engine.eval()
    with torch.no_grad():
        value = engine(*batch(10_000, rank, device))
    engine.train()
    dist.reduce(value, dst=0)
    if stops(step, value.item()):
        break
dist.destroy_process_group()
