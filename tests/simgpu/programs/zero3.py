"""DeepSpeed ZeRO-3, against the same training on the CPU."""
import os
import sys

import deepspeed
import torch

import reference
from small_gpt import SmallGpt, batch
from whole_line import say

check_values = "--check" in sys.argv
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
deepspeed.init_distributed("nccl")
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
config = {
    "train_micro_batch_size_per_gpu": 2,
    "optimizer": {"type": "AdamW", "params": {"lr": reference.LEARNING_RATE, "weight_decay": 0.01, "torch_adam": True}},
    "zero_optimization": {
        "stage": 3, "overlap_comm": True, "contiguous_gradients": True, "stage3_param_persistence_threshold": 0,
        "stage3_max_live_parameters": 1000, "stage3_max_reuse_distance": 1000,
    },
    "gradient_clipping": reference.CLIP,
    "steps_per_print": 1000,
}
torch.manual_seed(0)
with deepspeed.zero.Init(config_dict_or_path=config, enabled=not check_values):    # zero.Init draws other numbers
    model = SmallGpt()
engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
for step, wanted in enumerate(reference.train(world)):
    loss = engine(batch(rank * 100).cuda())
    engine.backward(loss)
    engine.step()
    say(f"step {step} loss {loss.item():.4f} norm {float(engine.get_global_grad_norm()):.4f}")
    if check_values:
        reference.check(rank, step, loss.item(), float(engine.get_global_grad_norm()), wanted)
torch.cuda.synchronize()
assert engine.skipped_steps == 0, f"{engine.skipped_steps} steps were skipped"
deepspeed.comm.destroy_process_group()
say("training right")
