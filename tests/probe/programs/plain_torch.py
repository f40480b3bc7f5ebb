"""Plain torch on one CPU process: a loader, a model, two optimizer steps, an evaluation, FSDP2, a compiled model.
Prints what the probe said (ARM=0: runs without it) and what the job computed."""
import atexit
import json
import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), ".."), os.environ["PROBE"]]
from fake_native import FakeNative

import dshang_probe

native = FakeNative()
atexit.register(lambda: print("END " + json.dumps(native.of("exception", "teardown"))))     # runs after the probe's own
armed = os.environ["ARM"] == "1"
if armed:
    assert dshang_probe.arm(native)
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.act = nn.ReLU()
        self.second = nn.Linear(4, 1)

    def forward(self, x):
        return self.second(self.act(self.first(x)))


results = {}
torch.manual_seed(0)
model, criterion = Model(), nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.utils.data.DataLoader(torch.arange(16.0).reshape(4, 4), batch_size=2)
losses = []
for batch in data:
    loss = criterion(model(batch), batch.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
model.eval()
with torch.no_grad():
    losses.append(model(torch.ones(1, 4)).item())
results["losses"] = losses
marks = {"plain": len(native.said)}

os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ["PORT"])
torch.distributed.init_process_group("gloo")
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

sharded, mesh = Model(), init_device_mesh("cpu", (1,))
for part in (sharded.first, sharded.second, sharded):
    fully_shard(part, mesh=mesh)
sharded(torch.ones(2, 4)).sum().backward()
torch.distributed.destroy_process_group()
marks["fsdp"] = len(native.said)

import torch._dynamo

graphs = []


def count(graph, _):
    graphs.append(len(graph.graph.nodes))
    return graph.forward


compiled = torch.compile(Model(), backend=count)
compiled(torch.ones(2, 4)).sum().backward()
compiled(torch.ones(2, 4)).sum().backward()
results["graphs"], results["breaks"] = graphs, sum(torch._dynamo.utils.counters["graph_break"].values())
print("SAID " + json.dumps({"said": native.said, "marks": marks, "results": results}))
sys.stdout.flush()
raise RuntimeError("the end")
