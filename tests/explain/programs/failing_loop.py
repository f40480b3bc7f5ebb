"""failing_loop.py MISTAKE: a small training with torch.distributed alone that fails; record_jobs.py tells how it is started."""
import ctypes
import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist

mistake = sys.argv[1]
rank, STEPS, WIDTH = int(os.environ["RANK"]), 8, 256


class Tokens(torch.utils.data.Dataset):
    """Lines of a file, one a sample."""

    def __init__(self, path):
        with open(path) as file:
            self.lines = file.read().splitlines()

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, number):
        return torch.full((WIDTH,), float(len(self.lines[number])))


def steps_of_this_rank():
    return STEPS - 3 if mistake == "fewer_batches" and rank == 2 else STEPS


def length(step):
    """Of the batch's longest sample."""
    return 400_000 if mistake == "long_sample" and rank == 1 and step == 5 else 400


def train(model):
    for step in range(1, steps_of_this_rank() + 1):
        activations = [torch.ones(length(step), WIDTH, device="cuda") for _ in range(40)]
        loss = model(activations[0]).mean()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        torch.cuda.synchronize()
        print(f"step {step} loss: {3 - step / 10}", flush=True)
        if mistake == "crash" and rank == 1 and step == 5:
            ctypes.string_at(0)
        if mistake == "different_shapes" and step == 5:
            dist.all_reduce(torch.ones(1000 + rank, device="cuda"))


def wait_on_the_host():
    """A barrier of gloo, which tells the ranks that are left when one has gone."""
    group = dist.new_group(backend="gloo")
    for step in range(1, STEPS + 1):
        if step == 5 and rank == 1:
            raise ValueError("sample 17 has a negative length")
        dist.monitored_barrier(group, timeout=timedelta(seconds=20))
        print(f"step {step} loss: {3 - step / 10}", flush=True)


def main():
    device = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", timeout=timedelta(seconds=15), device_id=torch.device("cuda", device))
    if mistake == "no_data":
        Tokens("data/train.txt")
    if mistake == "peer_gone":
        return wait_on_the_host()
    model = torch.nn.Linear(WIDTH, WIDTH).cuda()
    if mistake == "other_model":
        torch.save(torch.nn.Linear(WIDTH, 2 * WIDTH).state_dict(), f"model-{rank}.pt")
        model.load_state_dict(torch.load(f"model-{rank}.pt"))
    train(model)
    if mistake == "disk_full_at_save" and rank == 0:
        torch.save(model.state_dict(), "/dev/full")
    dist.barrier()
    dist.destroy_process_group()


main()
