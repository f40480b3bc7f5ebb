"""ZeRO-3: one rank generates fewer tokens.

    deepspeed --num_gpus 2 examples/unequal_generation.py --mistake     stops after step 4
    deepspeed --num_gpus 2 examples/unequal_generation.py               the repaired program

Every other step, each rank continues a prompt until its own sequence ends.  Each token is a forward pass and gathers
the whole model, so that a rank that is done leaves the others waiting.
The repair: a rank that is done goes on and throws the tokens away until all are done (Hugging Face's synced_gpus=True).
"""
import deepspeed
import torch
import torch.distributed as dist

from small_model import Model, arguments, batch, say, this_rank, zero_config

LONGEST = 6


def length(step):
    """After how many tokens this rank's sequence ends."""
    return 3 if rank == 1 and step >= 4 else LONGEST


def everybody_done(done):
    running = torch.tensor([int(not done)], device=device)
    dist.all_reduce(running, op=dist.ReduceOp.MAX)
    return running.item() == 0


def generate(step):
    x, target = batch(step, rank, device)
    tokens, made = [], 0
    while True:
        token = engine(x, target)
        made += 1
        done = made >= length(step)
        if len(tokens) < length(step):
            tokens.append(token.item())
        if done if args.mistake else everybody_done(done):
            return tokens


args = arguments(mistake="each rank stops when its own sequence ends; rank 1 makes 3 tokens after step 4")
deepspeed.init_distributed("nccl")
rank, device = this_rank()
torch.manual_seed(0)
config = zero_config(3)
# Nothing stays gathered and nothing is gathered early, as in a model that is large beside these limits.
config["zero_optimization"].update(stage3_max_reuse_distance=0, stage3_prefetch_bucket_size=0)
with deepspeed.zero.Init(config_dict_or_path=config):
    model = Model()
engine, _, _, _ = deepspeed.initialize(model=model, config=config)
for step in range(args.steps):
    loss = engine(*batch(step, rank, device))
    engine.backward(loss)
    engine.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
    if step % 2 == 0:
        engine.eval()
        with torch.no_grad():
            say(rank, f"{len(generate(step))} tokens")
        engine.train()
dist.destroy_process_group()
