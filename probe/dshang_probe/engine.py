"""DeepSpeed's engine: phases, steps, configuration.  Methods of the class are replaced: every engine has them."""
import sys
import weakref

from dshang_probe import facts
from dshang_probe.batches import largest
from dshang_probe.errors import without_own_frame
from dshang_probe.structure import note_parameters


class Engine:
    def __init__(self, probe):
        self.probe = probe
        self.type = None                      # DeepSpeedEngine, once it is imported
        self.known = weakref.WeakKeyDictionary()      # engine: its number, from 1
        self.steps_of = weakref.WeakKeyDictionary()   # engine: steps whose numbers were looked at
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
                                          given=self._forward_takes, made=self._forward_made))
        replace(engine, "backward", around("backward", after=self._backward_done, given=self._loss_given))
        replace(engine, "step", around("optimizer", before=self._step_begins, after=self._step_done))
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
            key = guarded("parameters", self._note_model, model, kwargs.get("mpu"))
            try:
                original(engine, *args, **kwargs)
            except Exception as error:
                self.probe.configured.refused(error, getattr(kwargs.get("config_class"), "_param_dict", None))
                without_own_frame(error)
                raise
            if key:
                guarded("values", self._taken_over, engine, key)
        return init

    def _note_model(self, model, parallel):
        if hasattr(model, "named_parameters"):
            self.made += 1
            self.probe.patches.guarded("facts", facts.note_size, self.probe.native, model)
            if parallel is not None or any(kind.__name__ == "PipelineModule" for kind in type(model).__mro__):
                self.probe.native.note("model.parallel", "its parts differ by rank")
            if not self.late:                 # else nobody knows as which of its models the ranks should compare it
                key = "parameters.%d" % self.made
                note_parameters(self.probe.native, model, key)
                return key
        return None

    def _taken_over(self, engine, key):
        members = facts.members_of(getattr(engine, "data_parallel_group", None))
        self.probe.values.taken_over(engine.module, key, members)

    def adopt(self, engine):
        """An engine that was made before the probe was armed is known from its first forward on."""
        if engine not in self.known:
            self._created(engine)

    def _forward_begins(self, engine):
        self.adopt(engine)
        self.probe.steps.engine_forward(engine)
        if getattr(engine.module, "training", False):
            self.probe.patches.guarded("values", self.probe.numbers.forward_begins, engine.module)

    def _forward_made(self, engine, output):
        if not getattr(engine.module, "training", True):
            self.probe.numbers.evaluated(engine.module, output)

    def _loss_given(self, args, kwargs):
        self.probe.numbers.loss(kwargs.get("loss", args[1] if len(args) > 1 else None))

    def _forward_takes(self, args, kwargs):
        sizes = largest((args[1:], kwargs), self.probe.tensor_types)
        if sizes:
            self.probe.native.batch(*sizes)

    def _created(self, engine, *_):
        probe = self.probe
        self.adopted += 1
        self.known[engine] = self.adopted
        self.steps_of[engine] = engine.global_steps
        probe.names.add_model(engine.module)
        probe.names.add_unrecorded(engine)
        if engine.zero_optimization_stage() == 3:
            probe.modules.remove()            # the coordinator tells the visits, backward ones too
        guarded = probe.patches.guarded
        guarded("facts", facts.note_deepspeed, probe.native, sys.modules["deepspeed"])
        guarded("facts", facts.note_engine, probe.native, engine, self.adopted)
        guarded("facts", facts.note_muon, probe.native, engine, self.adopted)
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
        self.probe.later.poll()

    def _step_begins(self, engine):
        self.probe.training.engine_steps(engine, self.known.get(engine, 1))

    def _step_done(self, engine):
        self.probe.memory.sample("optimizer")
        if self.probe.numerics:
            self.probe.patches.guarded("values", self._look_at_step, engine)
        self.probe.later.poll()

    def _look_at_step(self, engine):
        """The norm and the loss scale of a step, once it has been made; what DeepSpeed holds on the host is taken as it is."""
        steps, numbers = self.probe.steps, self.probe.numbers
        if steps.engine is None or steps.engine() is not engine or self.steps_of.get(engine) == engine.global_steps:
            return
        self.steps_of[engine] = engine.global_steps
        optimizer = engine.optimizer
        skipped = getattr(optimizer, "overflow", False) is True
        if engine.fp16_enabled() and engine.dynamic_loss_scale():
            scaler = getattr(optimizer, "loss_scaler", None)
            numbers.scale_is(getattr(optimizer, "cur_scale", None), skipped, getattr(scaler, "min_scale", 1))
        numbers.norm(getattr(engine, "_global_grad_norm", None), skipped, engine.gradient_clipping())

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
