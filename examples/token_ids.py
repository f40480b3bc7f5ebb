"""DistributedDataParallel: the tokenizer knows more words than the model has rows.

    torchrun --nproc_per_node 2 examples/token_ids.py --mistake     rank 1 ends in the step that meets such a word
    torchrun --nproc_per_node 2 examples/token_ids.py               the repaired program

Words were added to the tokenizer, and the embedding was not made larger.  On a GPU the lookup ends in a "device-side
assert", far from its cause.
The repair: the embedding has a row for each word.
"""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

from small_model import BATCH, BLOCKS, WIDTH, Block, arguments, say, this_rank

WORDS, ADDED, LENGTH = 64, 2, 8


class Sentences(Dataset):
    """The samples of one rank."""

    def __init__(self, rank, steps):
        self.ids = torch.randint(0, WORDS, (BATCH * steps, LENGTH), generator=torch.Generator().manual_seed(rank))
        if rank == 1:
            self.ids[3 * BATCH + 1, 5] = WORDS + 1           # one of the words that were added

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index]}


class Reader(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.words = nn.Embedding(rows, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.scores = nn.Linear(WIDTH, rows)

    def forward(self, ids):
        x = self.words(ids[:, :-1])
        for block in self.blocks:
            x = block(x)
        return nn.functional.cross_entropy(self.scores(x).flatten(0, 1).float(), ids[:, 1:].flatten())


args = arguments(mistake="the embedding has no rows for the words that were added")
rank, device = this_rank()
dist.init_process_group("nccl")
torch.manual_seed(0)
model = DistributedDataParallel(Reader(WORDS if args.mistake else WORDS + ADDED).to(device), device_ids=[device.index])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step, batch in enumerate(DataLoader(Sentences(rank, args.steps), batch_size=BATCH)):
    loss = model(batch["input_ids"].to(device))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    say(rank, f"step {step} loss {loss.item():.6f}")
dist.destroy_process_group()
