"""failing_engine.py MISTAKE: a small training with DeepSpeed that fails; record_jobs.py tells how it is started."""
import argparse
import os
import signal

import deepspeed
import torch

parser = argparse.ArgumentParser()
parser.add_argument("mistake")
parser.add_argument("--local_rank", type=int, default=0)
args = parser.parse_args()
mistake = args.mistake
STEPS, WIDTH, HUGE = 8, 64, 45_000
CHECKPOINT = "checkpoint"

ADAM = {"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": True}}
PLAIN = {"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True}, "steps_per_print": 1, "optimizer": ADAM}
FP16 = dict(PLAIN, zero_optimization={"stage": 2}, fp16={"enabled": True, "initial_scale_power": 3, "hysteresis": 1})
FP16.pop("bf16")
CONFIGS = {
    "both_precisions": dict(PLAIN, fp16={"enabled": True}),
    "unknown_optimizer": dict(PLAIN, optimizer={"type": "AdamX", "params": {"lr": 1e-4}}),
    "misspelt_key": dict(PLAIN, zero_optimization={"stage": 2, "overlap_com": True}),
    "no_compiler": dict(PLAIN, optimizer={"type": "AdamW", "params": {"lr": 1e-4}}),
    "smallest_scale": FP16,
    "nan_loss": dict(PLAIN, bf16={"enabled": False}, optimizer={"type": "AdamW", "params": {"lr": 1e30, "torch_adam": True}}),
    "other_ranks": dict(PLAIN, zero_optimization={"stage": 2}),
    "saved": dict(PLAIN, zero_optimization={"stage": 2}),
}


def batch(engine, step):
    torch.manual_seed(step)
    return torch.randn(2, engine.module.weight.shape[1], device=engine.device, dtype=engine.module.weight.dtype)


def resume(engine):
    """What a program does that takes a checkpoint for granted."""
    path, state = engine.load_checkpoint(CHECKPOINT)
    return state["step"] if mistake == "no_checkpoint" else 0


def main():
    torch.cuda.set_device(args.local_rank)
    width = HUGE if mistake == "too_large" else WIDTH
    model = torch.nn.Linear(width, width, device="cuda")
    engine = deepspeed.initialize(model=model, config=CONFIGS.get(mistake, PLAIN), model_parameters=model.parameters())[0]
    first = resume(engine) if mistake in ("no_checkpoint", "other_ranks") else 0
    for step in range(first + 1, STEPS + 1):
        if mistake == "killed_by_host" and step == 5 and engine.global_rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        loss = engine(batch(engine, step)).float().pow(2).mean()
        engine.backward(loss * 1e6 if mistake == "smallest_scale" else loss)
        engine.step()
        print(f"step {step} loss: {loss.item():.4f}", flush=True)
    if mistake == "saved":
        engine.save_checkpoint(CHECKPOINT, client_state={"step": STEPS})


main()
