"""DeepSpeed's engine: phases, steps, configuration.  Methods of the class are replaced: every engine has them."""
import sys
import weakref

from dshang_probe import facts
from dshang_probe.batches import largest
from dshang_probe.structure import note_parameters


class Engine:
    def __init__(self, probe):
        self.probe = probe
        self.type = None                      # DeepSpeedEngine, once it is imported
        self.known = weakref.WeakKeyDictionary()      # engine: its number, from 1
        self.made = 0                         # engines that were built, also those that failed
        self.adopted = 0
        self.late = False                     # engines may have been made before this process was armed

    def watch(self, module):
        """deepspeed.runtime.engine"""
        probe, engine = self.probe, module.DeepSpeedEngine
        self.type = engine
        self.late = _has_begun(engine)
        replace, around, memory = probe.patches.replace, probe.phases.around, probe.memory
        replace(engine, "__init__", around("init", after=self._created))
        replace(engine, "__init__", self._around_init)
        replace(engine, "forward", around("forward", before=self._forward_begins, after=self._forward_done,
                                           given=self._forward_takes))
        replace(engine, "backward", around("backward", after=self._backward_done))
        replace(engine, "step", around("optimizer", before=self._step_begins, after=memory.at_end_of("optimizer")))
        for name in ("save_checkpoint", "save_16bit_model", "_zero3_consolidated_16bit_state_dict"):
            replace(engine, name, around("save", after=memory.at_end_of("save")), optional=True)
        for name in ("load_checkpoint", "load_module_state_dict"):
            replace(engine, name, around("load"), optional=True)
        replace(engine, "compile", self._around_compile, optional=True)

    def _around_init(self, original):
        """Before the engine broadcasts anything, while each rank still has the model that it brought."""
        guarded = self.probe.patches.guarded

        def init(engine, *args, **kwargs):
            model = kwargs.get("model", args[1] if len(args) > 1 else None)
            guarded("parameters", self._note_model, model, kwargs.get("mpu"))
            return original(engine, *args, **kwargs)
        return init

    def _note_model(self, model, parallel):
        if hasattr(model, "named_parameters"):
            self.made += 1
            facts.note_size(self.probe.native, model)
            if parallel is not None or any(kind.__name__ == "PipelineModule" for kind in type(model).__mro__):
                self.probe.native.note("model.parallel", "its parts differ by rank")
            if not self.late:                 # else nobody knows as which of its models the ranks should compare it
                note_parameters(self.probe.native, model, self.made)

    def adopt(self, engine):
        """An engine that was made before the probe was armed is known from its first forward on."""
        if engine not in self.known:
            self._created(engine)

    def _forward_begins(self, engine):
        self.adopt(engine)
        self.probe.steps.engine_forward(engine)

    def _forward_takes(self, arguments, named):
        sizes = largest((arguments[1:], named), self.probe.tensor_types)
        if sizes:
            self.probe.native.batch(*sizes)

    def _created(self, engine, *_):
        probe = self.probe
        self.adopted += 1
        self.known[engine] = self.adopted
        probe.names.add_model(engine.module)
        probe.names.add_unrecorded(engine)
        if engine.zero_optimization_stage() == 3:
            probe.modules.remove()            # the coordinator tells the visits, backward ones too
        guarded = probe.patches.guarded
        guarded("facts", facts.note_deepspeed, probe.native, sys.modules["deepspeed"])
        guarded("facts", facts.note_engine, probe.native, engine, self.adopted)
        guarded("facts", facts.note_memory_settings, probe.native, engine, self.adopted)
        guarded("facts", facts.note_size, probe.native, engine.module)
        probe.memory.sample("init")
        guarded("data-parallel ranks", facts.note_data_parallel, probe.native,
                getattr(engine, "data_parallel_group", None), self.adopted)

    def _forward_done(self, *_):
        self.probe.native.exit_module()
        self.probe.memory.sample("forward")

    def _backward_done(self, engine):
        self.probe.training.engine_backward(engine)
        self.probe.memory.sample("backward")

    def _step_begins(self, engine):
        self.probe.training.engine_steps(engine, self.known.get(engine, 1))

    def _around_compile(self, original):
        def compile(engine, *args, **kwargs):
            self.probe.compiled.give_way()
            return original(engine, *args, **kwargs)
        return compile


def _has_begun(engine):
    """Whether this process has made an engine, or is about to: DeepSpeed keeps its parameters' names then."""
    if len(getattr(sys.modules.get("deepspeed.utils.debug"), "param_names", ())):
        return True
    frame, code = sys._getframe(), getattr(engine.__init__, "__code__", None)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame is not None
