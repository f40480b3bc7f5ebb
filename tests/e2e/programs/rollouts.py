"""A loop as of reinforcement learning: an actor (ZeRO-3) generates, a frozen reference (ZeRO-3, never trained) and a critic
(ZeRO-2) judge, actor and critic are trained in two epochs over what was generated."""
import deepspeed
import torch

from small_model import Model, arguments, batch, say, this_rank, zero_config


def engine_of(stage, trained=True):
    config = zero_config(stage)
    if not trained:
        del config["optimizer"]
    torch.manual_seed(stage)
    with deepspeed.zero.Init(config_dict_or_path=config, enabled=stage == 3):
        model = Model()
    return deepspeed.initialize(model=model, config=config)[0]


args = arguments()
deepspeed.init_distributed("nccl")
rank, device = this_rank()
actor, critic, reference = engine_of(3), engine_of(2), engine_of(3, trained=False)
reference.eval()
for step in range(args.steps):
    x, target = batch(step, rank, device)
    actor.eval()
    with torch.no_grad():
        rewards = [actor(x, target) - reference(x, target) for _ in range(3)]
    actor.train()
    for _ in range(2):
        value = critic(x, target)
        critic.backward((value - sum(rewards)).pow(2))
        critic.step()
        loss = actor(x, target)
        actor.backward(loss)
        actor.step()
    say(rank, f"step {step} loss {loss.item():.6f}")
torch.distributed.destroy_process_group()
