"""DeepSpeed with Muon: the table of words and the output layer are updated by it, which is made for what lies between.

    deepspeed --num_gpus 2 examples/muon_on_the_head.py --mistake     the loss is nan after some steps
    deepspeed --num_gpus 2 examples/muon_on_the_head.py               the repaired program

Muon makes every update equally large in all directions, however small the gradient is.  DeepSpeed leaves parameters to
Adam whose name holds `embed` or `lm_head`; others it takes for matrices of the model's inside.
The repair: the two modules are called that.
"""
import deepspeed
import torch
from torch import nn

from small_model import BATCH, WIDTH, Block, arguments, say, this_rank, zero_config

WORDS, LENGTH, BLOCKS, SHARPNESS = 512, 8, 4, 14


class Reader(nn.Module):
    def __init__(self, table, head):
        super().__init__()
        self.table, self.head = table, head
        self.add_module(table, nn.Embedding(WORDS, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.norm = nn.LayerNorm(WIDTH)
        self.add_module(head, nn.Linear(WIDTH, WORDS, bias=False))

    def forward(self, ids):
        x = getattr(self, self.table)(ids[:, :-1])
        for block in self.blocks:
            x = block(x)
        weights = (SHARPNESS * getattr(self, self.head)(self.norm(x)).float()).exp()
        likely = weights.gather(-1, ids[:, 1:, None]) / weights.sum(-1, keepdim=True)
        return -likely.log().mean()


def config():
    settings = {**zero_config(2), "gradient_clipping": 0.0}      # DeepSpeed would clip what Muon made of the gradients
    settings["optimizer"] = {"type": "Muon", "params": {"lr": 0.3, "momentum": 0.95, "adam_lr": 1e-3}}
    return settings


def sentences(step, rank, device):
    """Each word is followed by a certain other one."""
    first = torch.randint(0, WORDS, (BATCH, 1), generator=torch.Generator().manual_seed(1000 * step + rank))
    return ((first + 7 * torch.arange(LENGTH)) % WORDS).to(device)


args = arguments(mistake="the table and the head are called words and scores")
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
names = ("words", "scores") if args.mistake else ("embed_words", "lm_head")
engine, _, _, _ = deepspeed.initialize(model=Reader(*names), config=config())
for step in range(args.steps):
    loss = engine(sentences(step, rank, device))
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
torch.distributed.destroy_process_group()
