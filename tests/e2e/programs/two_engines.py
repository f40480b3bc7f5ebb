"""ZeRO-3: two engines that train by turns, as a GAN's; the second makes two steps for each of the first."""
import deepspeed
import torch
from torch import nn

from small_model import BATCH, WIDTH, Block, arguments, say, this_rank, zero_config


class Network(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.head = nn.Linear(WIDTH, outputs)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def engine_of(outputs):
    with deepspeed.zero.Init(config_dict_or_path=zero_config(3)):
        network = Network(outputs)
    return deepspeed.initialize(model=network, config=zero_config(3))[0]


def train(engine, loss):
    engine.backward(loss)
    engine.step()
    return loss.item()


args = arguments()
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
generator, judge = engine_of(WIDTH), engine_of(1)
draw = torch.Generator().manual_seed(rank)


def samples():
    return torch.randn(BATCH, WIDTH, generator=draw).to(device, torch.bfloat16)


for step in range(args.steps):
    for _ in range(2):
        real, fake = samples() * 0.5 + 1, generator(samples()).detach()
        verdict = judge(torch.cat([real, fake])).float()
        wrong = nn.functional.softplus(-verdict[:BATCH]).mean() + nn.functional.softplus(verdict[BATCH:]).mean()
        of_judge = train(judge, wrong)
    judge.module.requires_grad_(False)
    of_generator = train(generator, nn.functional.softplus(-judge(generator(samples())).float()).mean())
    judge.module.requires_grad_(True)
    say(rank, f"step {step} loss {of_judge + of_generator:.6f}")
torch.distributed.destroy_process_group()
