"""The same training on the CPU, in one process: what the simulated ranks have to come to."""
import torch

from small_gpt import SmallGpt, batch

STEPS, LEARNING_RATE, CLIP = 4, 3e-3, 1.0


def train(ranks, accumulate=1):
    """(loss of each rank's last batch, gradient norm) of every step."""
    torch.manual_seed(0)
    model = SmallGpt()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    for _ in range(STEPS):
        losses = [None] * ranks
        for rank in range(ranks):
            for micro in range(accumulate):
                losses[rank] = model(batch(rank * 100 + micro))
                (losses[rank] / (ranks * accumulate)).backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad()
        yield [loss.item() for loss in losses], norm.item()


def check(rank, step, loss, norm, wanted, tolerance=1e-3):
    losses, wanted_norm = wanted
    assert abs(loss - losses[rank]) < tolerance * losses[rank], f"step {step}: loss {loss}, expected {losses[rank]}"
    assert abs(norm - wanted_norm) < tolerance * wanted_norm, f"step {step}: norm {norm}, expected {wanted_norm}"
