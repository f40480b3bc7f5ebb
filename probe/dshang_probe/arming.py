"""Puts everything in place, at a moment at which it is safe."""
import atexit
import sys

from dshang_probe import facts
from dshang_probe.compiled import Compiled
from dshang_probe.configured import Configured
from dshang_probe.engine import Engine
from dshang_probe.errors import Errors
from dshang_probe.fsdp import Fsdp
from dshang_probe.imports import ImportWatch, is_loaded
from dshang_probe.inputs import Inputs
from dshang_probe.later import Later
from dshang_probe.loader import Loader
from dshang_probe.memory import Memory
from dshang_probe.modules import Modules
from dshang_probe.names import Names
from dshang_probe.numbers import Numbers
from dshang_probe.patches import Patches
from dshang_probe.phases import Phases
from dshang_probe.program import Arguments, note_command
from dshang_probe.steps import Steps
from dshang_probe.training import Training
from dshang_probe.values import Values
from dshang_probe.watch import Watch
from dshang_probe.zero3 import Zero3, in_backward_of

_PARAMETERS = "deepspeed.runtime.zero.partition_parameters"
_WATCHED = ("torch", "torch.distributed", "torch._dynamo.convert_frame",
            "torch.distributed.fsdp._fully_shard._fsdp_param_group", "deepspeed.runtime.engine", "deepspeed.runtime.config",
            _PARAMETERS, "deepspeed.runtime.zero.partitioned_param_coordinator", "torch.distributed.algorithms.join")


class Probe:
    """The parts, and what they share."""

    def __init__(self, native):
        self.native = native
        self.torch = None
        self.numerics = bool(getattr(native, "numerics", 1)) and not _without_values()      # DSHANG_NUMERICS
        self.in_backward = lambda: False
        self.patches = Patches(native)
        self.names = Names(native)
        self.errors = Errors(native, self.names, self.patches)
        self.phases = Phases(native, self.names, self.errors, self.patches)
        self.memory = Memory(native, self.patches, self.names)
        self.steps = Steps(native, self.memory)
        self.imports = ImportWatch(self.patches)
        self.compiled = Compiled(self)
        self.later = Later(self)
        self.values = Values(self)
        self.watch = Watch(self)
        self.patches.on_undo(self.watch.stop, "inner")
        self.numbers = Numbers(self)
        self.inputs = Inputs(self)
        self.modules = Modules(self)
        self.training = Training(self)
        self.loader = Loader(self)
        self.fsdp = Fsdp(self)
        self.configured = Configured(self)
        self.arguments = Arguments(self)
        self.engine = Engine(self)
        self.zero3 = Zero3(native, self.names, self.phases, self.patches)
        self.steps.at_begin = [lambda step: self.later.poll(),
                               self._guarded("data loaders", self.loader.step_begins),
                               self._guarded("seeds", self.training.step_begins),
                               self._guarded("values", self.values.step_begins),
                               self._guarded("values of batches", lambda step: self.inputs.model_is_known())]

    @property
    def tensor_types(self):
        return (self.torch.Tensor, self.torch.nn.Parameter)

    def _guarded(self, name, function):
        return lambda step: self.patches.guarded(name, function, step)


def _without_values():
    """A dry run that computes no floats; unless somebody asks for it."""
    environment = getattr(sys.modules.get("os"), "environ", {})
    return environment.get("SIMGPU_NUM") in ("off", "int") and "DSHANG_NUMERICS" not in environment


class Arming:
    def __init__(self, native):
        self.probe = Probe(native)
        self.left = None              # steps that are still to be taken; None: not begun
        self.done = False

    def try_now(self):
        """True when armed (already); False while the moment is bad."""
        if self.done:
            return True
        if self.left is None:
            if _bad_moment():
                return False
            self.left = self._steps()
        while self.left:
            self.left.pop(0)()        # one that a signal's handler interrupts is not taken again
        self.done = True
        return True

    def _steps(self):
        probe = self.probe

        def when_imported(name, act):
            return lambda: probe.imports.when_imported(name, act)
        return [
            probe.errors.watch_uncaught,
            lambda: probe.patches.guarded("command", note_command, probe.native),
            when_imported("torch", self._torch_is_there),
            when_imported("torch.distributed", probe.training.watch_distributed),
            when_imported("torch.distributed.algorithms.join", probe.training.watch_join),
            when_imported("torch._dynamo.convert_frame", probe.compiled.watch),
            when_imported("torch.distributed.fsdp._fully_shard._fsdp_param_group", probe.fsdp.watch),
            when_imported("deepspeed.runtime.config", probe.configured.watch),
            when_imported("transformers.trainer", probe.arguments.watch),
            when_imported("deepspeed.runtime.engine", probe.engine.watch),
            when_imported(_PARAMETERS, probe.zero3.watch_parameters),
            when_imported("deepspeed.runtime.zero.partitioned_param_coordinator", probe.zero3.watch_coordinator),
            probe.imports.start,
            lambda: atexit.register(self._end),
        ]

    def _torch_is_there(self, torch):
        """torch imports what is watched here with itself."""
        probe = self.probe
        probe.torch = torch
        probe.in_backward = in_backward_of(torch)
        for name, watch in (("torch.nn.modules.module", probe.modules.watch),
                            ("torch.optim.optimizer", probe.training.watch_optimizers),
                            ("torch.nn.parallel.distributed", probe.training.watch_ddp),
                            ("torch.cuda.graphs", probe.later.watch_graphs),
                            ("torch.nn.utils.clip_grad", probe.training.watch_clipping),
                            ("torch.amp.grad_scaler", probe.training.watch_scaler),
                            ("torch.utils.data.dataloader", probe.loader.watch)):
            probe.imports.when_imported(name, watch)
        probe.training.watch_torch(torch)
        probe.patches.guarded("versions", facts.note_torch, probe.native, torch)

    def _end(self):
        if self.done:
            self.probe.later.poll()
            self.probe.memory.step_ends()
            self.probe.native.teardown(1)

    def undo(self):
        self.done, self.left = False, None
        atexit.unregister(self._end)
        self.probe.patches.undo()


def _bad_moment():
    """A model is being built under zero.Init, a dispatch mode is on, or a watched module is half imported."""
    if any(is_loaded(name) is None for name in _WATCHED):
        return True
    parameters = sys.modules.get(_PARAMETERS)
    if getattr(parameters, "zero_init_context", 0):
        return True
    dispatch = sys.modules.get("torch.utils._python_dispatch")
    current = getattr(dispatch, "_get_current_dispatch_mode", None)
    mode = current() if current is not None else None
    # The simulated GPU computes small tensors in a dispatch mode that is on all the time.
    return mode is not None and not type(mode).__module__.startswith("simgpu")
