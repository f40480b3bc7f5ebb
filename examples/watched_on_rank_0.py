"""ZeRO-3: rank 0 runs a module once more, to have something to log.

    deepspeed --num_gpus 2 examples/watched_on_rank_0.py --mistake  stops in step 4
    deepspeed --num_gpus 2 examples/watched_on_rank_0.py            the repaired program

Rank 0 embeds the middle of the model once more.  The weights are there already, so that nothing waits at once; but
rank 0 has lost its order of modules, gathers one by one from then on, and does not meet the others in backward.
The repair: all ranks run what is logged, rank 0 logs it.
"""
import deepspeed
import torch

from small_model import Model, arguments, batch, say, this_rank, zero_config


class WatchedModel(Model):
    watched = False
    seen = None

    def forward(self, x, target):
        x = self.embed(x)
        for number, block in enumerate(self.blocks):
            x = block(x)
            if self.watched and number == 3:
                self.watch(x.detach(), target)
        return (self.head(x) - target).float().pow(2).mean()

    def watch(self, x, target):
        with torch.no_grad():
            self.seen = (self.embed(x) - target).float().pow(2).mean()


args = arguments(mistake="rank 0 watches alone in step 4")
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
with deepspeed.zero.Init(config_dict_or_path=zero_config(3)):
    model = WatchedModel()
engine, _, _, _ = deepspeed.initialize(model=model, config=zero_config(3))
for step in range(args.steps):
    model.watched = step == 4 and (rank == 0 or not args.mistake)
    loss = engine(*batch(step, rank, device))
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
    if model.watched and rank == 0:
        say(rank, f"half of the blocks: {model.seen.item():.6f}")
torch.distributed.destroy_process_group()
