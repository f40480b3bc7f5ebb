"""ZeRO-3: one rank skips a block.

    deepspeed --num_gpus 2 examples/skipped_block.py --mistake      stops in step 4
    deepspeed --num_gpus 2 examples/skipped_block.py                the repaired program

Each rank decides by its own data whether a block is worth running (stochastic depth, an idle expert, a batch without
images).  A block that is not run does not gather its parameters, while the other ranks wait in that gather.
The repair: every rank runs the block, and a rank that has no use for it multiplies the result by 0.
"""
import deepspeed
import torch

from small_model import Model, arguments, batch, say, this_rank, zero_config


class SkippingModel(Model):
    mistake = False
    skip_now = False

    def forward(self, x, target):
        x = self.embed(x)
        for number, block in enumerate(self.blocks):
            useless = self.skip_now and number == 5
            if useless and self.mistake:
                continue
            y = block(x)
            x = x + 0 * y if useless else y
        return (self.head(x) - target).float().pow(2).mean()


args = arguments(mistake="rank 1 leaves out a block in step 4")
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
with deepspeed.zero.Init(config_dict_or_path=zero_config(3)):
    model = SkippingModel()
model.mistake = args.mistake
engine, _, _, _ = deepspeed.initialize(model=model, config=zero_config(3))
for step in range(args.steps):
    model.skip_now = rank == 1 and step >= 4
    loss = engine(*batch(step, rank, device))
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
torch.distributed.destroy_process_group()
