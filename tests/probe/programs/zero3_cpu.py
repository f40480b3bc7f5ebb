"""Two steps of accumulation 2, an evaluation and a save with DeepSpeed ZeRO-3 on one CPU process; prints what the probe said."""
import json
import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), ".."), os.environ["PROBE"]]
os.environ.update(DS_ACCELERATOR="cpu", RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1",
                  MASTER_PORT=os.environ.get("PORT", "29511"))
from fake_native import FakeNative

import dshang_probe

native = FakeNative()
if os.environ.get("ARM", "early") == "early":
    assert dshang_probe.arm(native)
    assert "torch" not in sys.modules
import torch
import deepspeed
from torch import nn
from torch.utils.checkpoint import checkpoint

for name in deepspeed.ops.__compatible_ops__:
    deepspeed.ops.__compatible_ops__[name] = False           # nothing is compiled on first use

if os.environ.get("ARM") == "late":
    assert dshang_probe.arm(native)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.act = nn.GELU()

    def forward(self, x):
        return x + self.act(self.inner(x))


class Model(nn.Module):
    def __init__(self, width=16, blocks=3):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        for number, block in enumerate(self.blocks):
            x = checkpoint(block, x, use_reentrant=False) if number == 1 and self.training else block(x)
        return self.head(x).float().pow(2).mean()


config = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2,
          "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
          "bf16": {"enabled": True}, "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0}}
torch.manual_seed(1)
with deepspeed.zero.Init(config_dict_or_path=config):
    if os.environ.get("ARM") == "inside":
        assert not dshang_probe.arm(native)
    model = Model()
if os.environ.get("ARM") == "inside":
    assert dshang_probe.arm(native)
engine, _, _, _ = deepspeed.initialize(model=model, config=config)
losses = []
for micro in range(6):
    torch.manual_seed(micro)
    loss = engine(torch.randn(2, 16, dtype=torch.bfloat16))
    engine.backward(loss)
    engine.step()
    losses.append(loss.item())
engine.eval()
with torch.no_grad():
    engine(torch.randn(2, 16, dtype=torch.bfloat16))
engine.train()
engine.save_checkpoint(os.environ["SAVE"])
with deepspeed.zero.GatheredParameters(model.head.weight):
    pass
print("SAID " + json.dumps({"said": native.said, "losses": losses}))
