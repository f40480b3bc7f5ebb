"""Backward, optimizer steps and saving of plain torch.  Under DeepSpeed these run inside phases of its engine."""
import sys
import weakref

from dshang_probe import facts
from dshang_probe.errors import user_place
from dshang_probe.structure import note_parameters


class Training:
    def __init__(self, probe):
        self.probe = probe
        self.by_torch = None          # where torch's own backward ran since the last step of an engine
        self.by_engine = weakref.WeakSet()      # engines whose own backward ran since their last step
        self.begun = False
        self.noted = set()            # numbers of engines
        self.seed_noted = False
        self.ddp = None               # DistributedDataParallel, once it is imported
        self.ddp_noted = weakref.WeakSet()
        self.ddp_made = 0

    def watch_torch(self, torch):
        probe = self.probe
        around, replace = probe.phases.around, probe.patches.replace
        replace(torch.autograd, "backward",
                around("backward", before=self._backward_begins, after=self._backward_done), "inner")
        replace(torch, "save", around("save"), also=[torch.serialization])
        replace(torch, "load", around("load"), also=[torch.serialization])

    def watch_clipping(self, module):
        """torch.nn.utils.clip_grad"""
        also = [sys.modules[name] for name in ("torch.nn.utils",) if name in sys.modules]
        self.probe.patches.replace(module, "clip_grad_norm_", self._around_clip, optional=True, also=also)

    def _around_clip(self, original):
        probe = self.probe

        def clip_grad_norm_(*args, **kwargs):
            norm = original(*args, **kwargs)
            if probe.steps.engine is None:
                largest = kwargs.get("max_norm", args[1] if len(args) > 1 else 0)
                clip = float(largest) if isinstance(largest, (int, float)) else 0.0
                probe.patches.guarded("values", probe.numbers.norm, norm, False, clip)
            return norm
        return clip_grad_norm_

    def watch_scaler(self, module):
        """torch.amp.grad_scaler"""
        numbers, guarded = self.probe.numbers, self.probe.patches.guarded

        def around_scale(original):
            def scale(scaler, *args, **kwargs):
                scaled = original(scaler, *args, **kwargs)
                if numbers.scale is None and getattr(scaler, "_enabled", False):
                    guarded("values", numbers.scale_begins, getattr(scaler, "_scale", None))
                return scaled
            return scale

        def around_update(original):
            def update(scaler, *args, **kwargs):
                result = original(scaler, *args, **kwargs)
                if getattr(scaler, "_enabled", False):
                    guarded("values", numbers.scale_is, getattr(scaler, "_scale", None), False, 1)
                return result
            return update
        self.probe.patches.replace(module.GradScaler, "scale", around_scale, optional=True)
        self.probe.patches.replace(module.GradScaler, "update", around_update, optional=True)

    def _backward_begins(self, tensors=None, *_):
        """Inside engine.backward the thread is in that phase already; a checkpoint calls it inside a graph."""
        probe = self.probe
        if probe.numerics and not probe.phases.inside("backward") and not probe.in_backward():
            probe.patches.guarded("values", probe.numbers.loss, tensors)
        if self.by_torch is None and probe.engine.adopted and not probe.phases.inside("backward") \
                and not probe.in_backward():
            self.by_torch = user_place(sys._getframe(2))
            if not self.begun:
                self.begun = True
                probe.native.note("backward.torch", "step %s %s" % (probe.steps.announced, self.by_torch))

    def _backward_done(self, *_):
        if not self.probe.phases.inside("backward"):      # else the engine's backward is about to end, too
            self.probe.memory.sample("backward")
            self.probe.later.poll()

    def engine_backward(self, engine):
        self.by_engine.add(engine)

    def engine_steps(self, engine, number):
        """The `number`-th engine makes a step: which backward gave it its gradients?  Not all know of torch's own."""
        by_torch, by_engine = self.by_torch, engine in self.by_engine
        self.by_torch = None
        self.by_engine.discard(engine)
        if by_torch is not None and not by_engine and number not in self.noted:
            self.noted.add(number)
            self.probe.native.note("backward.plain" + facts.ending_of(number),
                                   "step %s %s" % (self.probe.steps.announced, by_torch))

    def step_begins(self, step):
        if not self.seed_noted and self.probe.torch is not None:
            self.seed_noted = True
            facts.note_seed(self.probe.native, self.probe.torch)

    def watch_ddp(self, module):
        """torch.nn.parallel.distributed"""
        guarded = self.probe.patches.guarded

        def around_init(original):
            def init(model, *args, **kwargs):
                key = guarded("parameters", self._note_model, kwargs.get("module", args[0] if args else None))
                original(model, *args, **kwargs)
                guarded("data-parallel ranks", self._note_ddp, model)
                if key:
                    guarded("values", self._taken_over, model, key)
            return init
        self.ddp = module.DistributedDataParallel
        self.probe.patches.replace(self.ddp, "__init__", around_init)

    def _note_model(self, model):
        """torch itself compares the structure; here it gives values their names."""
        if not self.probe.numerics or self.probe.engine.made or not hasattr(model, "named_parameters"):
            return None
        self.ddp_made += 1
        key = "wrapped.%d" % self.ddp_made
        note_parameters(self.probe.native, model, key)
        return key

    def _taken_over(self, model, key):
        self.probe.values.taken_over(model.module, key, facts.members_of(getattr(model, "process_group", None)))

    def adopt(self, model):
        """A model that was wrapped before the probe was armed is known from its first forward on."""
        if type(model).__name__ == "DataParallel":
            self.probe.native.note("model.wrapper", "DataParallel")
        if self.ddp is not None and isinstance(model, self.ddp) and model not in self.ddp_noted:
            self.probe.patches.guarded("data-parallel ranks", self._note_ddp, model)

    def _note_ddp(self, model):
        self.ddp_noted.add(model)
        if not self.probe.engine.adopted:         # an engine says it itself
            facts.note_data_parallel(self.probe.native, getattr(model, "process_group", None))

    def watch_join(self, module):
        """torch.distributed.algorithms.join: the job allows for ranks that run out of batches."""
        native, guarded = self.probe.native, self.probe.patches.guarded

        def on_enter(original):
            def enter(context):
                guarded("uneven inputs", native.note, "data.uneven", "allowed: torch.distributed.algorithms.Join")
                return original(context)
            return enter
        self.probe.patches.replace(module.Join, "__enter__", on_enter, optional=True)

    def watch_optimizers(self, module):
        """torch.optim.optimizer"""
        probe = self.probe
        before = getattr(module, "register_optimizer_step_pre_hook", None)
        after = getattr(module, "register_optimizer_step_post_hook", None)
        if before is None or after is None:
            probe.patches.skip("optimizer steps", "torch before 2.0")
            return

        def step_begins(optimizer, *_):
            probe.patches.guarded("optimizer steps", probe.phases.push, "optimizer")

        def step_ends(optimizer, *_):
            probe.patches.guarded("optimizer steps", self._step_ends, optimizer)
        for handle in (before(step_begins), after(step_ends)):
            probe.patches.on_undo(handle.remove)

    def _step_ends(self, optimizer):
        probe = self.probe
        if probe.steps.engine is None:
            probe.phases.pop("optimizer")
            probe.steps.optimizer_done(optimizer)
            if probe.steps.announced is None:     # a compiled model announces none
                probe.patches.guarded("data loaders", probe.loader.step_begins, 0)
            probe.memory.sample("optimizer")
            probe.later.poll()

    def watch_distributed(self, module):
        """torch.distributed"""
        also = [sys.modules[name] for name in ("torch.distributed.distributed_c10d",) if name in sys.modules]
        native, guarded, phases = self.probe.native, self.probe.patches.guarded, self.probe.phases

        def around_init(original):
            in_phase = phases.around("init")(original)

            def init_process_group(*args, **kwargs):
                result = in_phase(*args, **kwargs)
                guarded("time-out of the process group", self._note_timeout, kwargs.get("timeout"))
                return result
            return init_process_group

        def around_destroy(original):
            def destroy_process_group(group=None, *args, **kwargs):
                if group is None:
                    self.probe.later.poll()
                    guarded("teardown", native.teardown, 0)
                return original(group, *args, **kwargs)
            return destroy_process_group
        self.probe.patches.replace(module, "init_process_group", around_init, optional=True, also=also)
        self.probe.patches.replace(module, "destroy_process_group", around_destroy, optional=True, also=also)

    def _note_timeout(self, timeout):
        """After which time torch's watchdog ends the job."""
        if timeout is None:
            definitions = sys.modules["torch.distributed.distributed_c10d"]
            timeout = definitions._get_default_timeout(definitions.get_backend())
        self.probe.native.note("pg.timeout_seconds", "%g" % timeout.total_seconds())
