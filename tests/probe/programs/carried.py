"""Loads the probe as libdshang.so does (docs/probe.md), arms it before torch and DeepSpeed are imported, and lets
stand-ins of both run a ZeRO-3 step.  Standard library only, Python 3.8 and later."""
import glob
import os
import pickle
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "stand_ins"), os.path.join(HERE, "..")]
sys.dont_write_bytecode = True
from fake_native import FakeNative

FILES = glob.glob(os.path.join(HERE, "..", "..", "..", "probe", "dshang_probe", "*.py"))


def load():
    sources = {}
    for path in FILES:
        with open(path) as file:
            sources[os.path.basename(path)[:-3]] = file.read()
    package = type(sys)("dshang_probe")
    package.__file__, package.__path__, package.sources = "<dshang>/__init__.py", [], sources
    sys.modules["dshang_probe"] = package
    exec(compile(sources["__init__"], package.__file__, "exec"), package.__dict__)
    return package


native = FakeNative()
native.numerics = 0              # the stand-ins hold no values
before = set(sys.modules)
probe = load()
assert probe.arm(native) is True and probe.arm(native) is True
new = {name.split(".")[0] for name in set(sys.modules) - before}
assert new <= {"dshang_probe", "json", "weakref", "_weakrefset", "functools", "atexit", "threading", "collections", "re",
               "_json", "enum", "sre_compile", "sre_parse", "sre_constants", "copyreg", "_collections", "_functools",
               "_weakref", "keyword", "operator", "_operator", "reprlib", "types", "heapq", "_heapq", "itertools"}, new
assert native.skipped() == [], native.skipped()

from deepspeed.runtime.engine import DeepSpeedEngine
from deepspeed.runtime.zero.partition_parameters import GatheredParameters, Init
from torch.nn.modules.module import Module, Parameter
from torch.utils.data.dataloader import DataLoader, _BaseDataLoaderIter

assert native.skipped() == [], native.skipped()
with Init():
    part = Module([], [Parameter(0), Parameter(1)])
    model = Module([("part", part), ("plain", Module([], []))], [Parameter(2)])
engine = DeepSpeedEngine(model=model)
loader = DataLoader("first", "second", "third")
batches = _BaseDataLoaderIter(loader)
assert batches.__next__() == "first"
engine.forward()
engine.backward()
engine.step()
with GatheredParameters():
    native._say("body")
try:
    engine.forward(fail=True)
except ZeroDivisionError:
    text = traceback.format_exc()
assert native.of("exception")[0][1] == "ZeroDivisionError"
assert sys.version_info < (3, 11) or "<dshang>" not in text, text

said = [what for what in native.said if what[0] != "note"]
expected = [
    ("push", "init"), ("pop",), ("push", "init"), ("pop",),
    ("step", 0), ("push", "forward"), ("trace_mode", "RECORD"), ("visit", "Module", "forward", 1),
    ("gather", "ids 2 (own 2)"), ("visit", "part", "forward", 1), ("gather", "ids 0-1 (own 0 ... own 1)"),
    ("pop",), ("exit_module",), ("push", "backward"), ("visit", "part", "backward", 1),
    ("gather", "ids 0-1 (own 0 ... own 1)"), ("pop",), ("push", "optimizer"), ("pop",),
    ("push", "gather"), ("pop",), ("body",), ("push", "gather"), ("pop",), ("step", 1)]
plain = [(what[0], what[2]) if what[0] == "gather" else what for what in said]
assert plain[:len(expected)] == expected, plain
gathers = [what[1] for what in said if what[0] == "gather"]
assert gathers[1] == gathers[2] != gathers[0]
facts = {what[1]: what[2] for what in native.of("note")}
assert facts["deepspeed.stage"] == "3" and facts["version.torch"] == "stand-in", facts
assert facts["loader.length"] == "3" and facts["loader.first_step"] == "0" and facts["seed.torch"] == "7", facts
assert facts["batch.0"] == "c3597c4806e1cd12", facts       # in every process, on every Python
assert facts["parameters.1"].startswith("3 ") and "parameter.1[2,0]:float32" in facts["parameters.1.0"], facts
assert len(facts["deepspeed.config.hash"]) == 16, facts
assert facts["model.size"] == "6 6 24" and "micro_batch=2" in facts["deepspeed.memory"], facts
assert native.skipped() == [], native.skipped()

import torch

for function in (torch.load, torch.save, torch.autograd.backward, torch.distributed.destroy_process_group):
    assert hasattr(function, "__wrapped__") and pickle.loads(pickle.dumps(function)) is function
coordinator = sys.modules["deepspeed.runtime.zero.partitioned_param_coordinator"].PartitionedParameterCoordinator
assert coordinator.fetch_sub_module.__wrapped__
engine.compile()
assert not hasattr(coordinator.fetch_sub_module, "__wrapped__")
probe.disarm()
assert not hasattr(DeepSpeedEngine.forward, "__wrapped__") and sys.excepthook is sys.__excepthook__
print("all checks passed")
