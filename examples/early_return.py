"""ZeRO-3: one rank returns early from forward.

    deepspeed --num_gpus 2 examples/early_return.py --mistake       stops in step 4
    deepspeed --num_gpus 2 examples/early_return.py                 the repaired program

A rank whose batch is empty (nothing left after filtering) returns a loss of 0 from the middle of forward and leaves out
the rest of the model, in whose gathers the others wait.
The repair: run the whole model on what there is, and multiply the loss by 0.
"""
import deepspeed
import torch

from small_model import Model, arguments, batch, say, this_rank, zero_config


class FilteringModel(Model):
    mistake = False

    def forward(self, x, target, empty):
        x = self.embed(x)
        for block in self.blocks[:4]:
            x = block(x)
        if empty and self.mistake:
            return x.float().sum() * 0
        for block in self.blocks[4:]:
            x = block(x)
        loss = (self.head(x) - target).float().pow(2).mean()
        return loss * 0 if empty else loss


args = arguments(mistake="rank 1 returns from the middle of forward in step 4")
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
with deepspeed.zero.Init(config_dict_or_path=zero_config(3)):
    model = FilteringModel()
model.mistake = args.mistake
engine, _, _, _ = deepspeed.initialize(model=model, config=zero_config(3))
for step in range(args.steps):
    loss = engine(*batch(step, rank, device), empty=rank == 1 and step >= 4)
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
torch.distributed.destroy_process_group()
