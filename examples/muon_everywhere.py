"""ZeRO-2 with Muon: the loss is nan within the first steps, because Muon updates the embedding and the output layer.

    deepspeed --num_gpus 2 examples/muon_everywhere.py --mistake     the logits explode
    deepspeed --num_gpus 2 examples/muon_everywhere.py               the repaired program

DeepSpeed leaves parameters to Adam whose name holds `embed` or `lm_head`; here they are called otherwise.  Muon makes each
update of a matrix equally large in all directions, far too large for these two, and the model's own soft maximum has no
protection against large logits.
The repair: the names that DeepSpeed knows.
"""
import deepspeed
import torch
import torch.distributed as dist
from torch import nn

from small_model import BATCH, WIDTH, Block, arguments, say, this_rank, zero_config

WORDS, LENGTH, SHARPNESS = 512, 8, 16


class LanguageModel(nn.Module):
    def __init__(self, table, output):
        super().__init__()
        self.names = table, output
        self.add_module(table, nn.Embedding(WORDS, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.add_module(output, nn.Linear(WIDTH, WORDS, bias=False))

    def forward(self, words):
        table, output = (getattr(self, name) for name in self.names)
        x = table(words[:, :-1])
        for block in self.blocks:
            x = block(x)
        odds = (SHARPNESS * output(x).float()).exp()                      # without subtracting the largest
        likelihood = odds.gather(-1, words[:, 1:, None]).squeeze(-1) / odds.sum(-1)
        return -likelihood.log().mean()


args = arguments(mistake="other names for the embedding and the output layer")
deepspeed.init_distributed("nccl")
rank, device = this_rank()
config = zero_config(2)
config["optimizer"] = {"type": "Muon", "params": {"muon_lr": 0.2, "adam_lr": 1e-2, "weight_decay": 0.0}}
torch.manual_seed(0)
names = ("words", "scores") if args.mistake else ("embed", "lm_head")
engine, _, _, _ = deepspeed.initialize(model=LanguageModel(*names), config=config)
generator = torch.Generator().manual_seed(rank)
for step in range(args.steps):
    words = torch.randint(0, 64, (BATCH, LENGTH), generator=generator)
    loss = engine(words.to(device))
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
dist.destroy_process_group()
