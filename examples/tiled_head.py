"""ZeRO-3: the loss is computed in tiles, and one rank has more of them.

    deepspeed --num_gpus 2 examples/tiled_head.py --mistake         stops in step 4
    deepspeed --num_gpus 2 examples/tiled_head.py                   the repaired program

The head is run on a few tokens at a time, to save memory, and the number of tiles follows from the number of tokens,
which differs from rank to rank.  Each tile is a visit of the head, so that the ranks visit it unequally often.
The repair: all ranks run as many tiles as the rank that has most; those without tokens are multiplied by 0.
"""
import deepspeed
import torch
import torch.distributed as dist

from small_model import Model, arguments, batch, say, this_rank, zero_config

TILE = 4


class TiledModel(Model):
    mistake = False

    def forward(self, x, target):
        y = self.embed(x)
        for block in self.blocks:
            y = block(y)
        losses = [self.tile(y[begin:begin + TILE], target[begin:begin + TILE]) for begin in range(0, len(y), TILE)]
        if not self.mistake:
            most = torch.tensor([len(losses)], device=x.device)
            dist.all_reduce(most, op=dist.ReduceOp.MAX)
            losses += [0 * self.tile(y[:TILE], target[:TILE]) for _ in range(most.item() - len(losses))]
        return torch.stack(losses).sum() / y.numel()

    def tile(self, y, target):
        return (self.head(y) - target).float().pow(2).sum()


args = arguments(mistake="each rank runs the tiles it has; rank 1 has two in step 4")
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
with deepspeed.zero.Init(config_dict_or_path=zero_config(3)):
    model = TiledModel()
model.mistake = args.mistake
engine, _, _, _ = deepspeed.initialize(model=model, config=zero_config(3))
for step in range(args.steps):
    parts = [batch(step, rank, device)]
    if rank == 1 and step == 4:
        parts.append(batch(step + 500, rank, device))
    loss = engine(*(torch.cat(tensors) for tensors in zip(*parts)))
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
torch.distributed.destroy_process_group()
