"""ZeRO stage 0: PyTorch's backward in place of the engine's.

    deepspeed --num_gpus 2 examples/mixed_backward.py --mistake     ends with an exception in step 4
    deepspeed --num_gpus 2 examples/mixed_backward.py               the repaired program

A training loop that was written for PyTorch and moved to DeepSpeed by halves: when the loss is put together from two
parts, its own backward() is called.  DeepSpeed 0.18.3 and later allows that in ZeRO stages 1 to 3 and refuses it in
stage 0; earlier ones let it pass and do not reduce all gradients.
The repair: engine.backward.
"""
import deepspeed
import torch

from small_model import Model, arguments, batch, say, this_rank, zero_config

args = arguments(mistake="loss.backward() from step 4 on")
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
engine, _, _, _ = deepspeed.initialize(model=Model(), config=zero_config(0))
for step in range(args.steps):
    loss = engine(*batch(step, rank, device))
    two_parts = step >= 4
    if two_parts:
        loss = loss + 1e-4 * loss.detach() * loss
    if args.mistake and two_parts:
        loss.backward()
    else:
        engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
torch.distributed.destroy_process_group()
