"""Module visits without ZeRO-3: one callback before and one after each module's forward.

A model is what is called from outside any known model; its parts are named from it.  Modules without parameters are
left out: nothing of theirs is gathered or reduced.
"""
import threading

from dshang_probe import facts
from dshang_probe.batches import largest


class Modules:
    def __init__(self, probe):
        self.probe = probe
        self.handles = []
        self.local = threading.local()

    def watch(self, module):
        """torch.nn.modules.module"""
        self.handles.append(module.register_module_forward_pre_hook(self._make_before()))
        try:
            self.handles.append(module.register_module_forward_hook(self._make_after(), always_call=True))
        except TypeError:                         # torch before 2.0
            self.handles.append(module.register_module_forward_hook(self._make_after()))
        self.probe.patches.on_undo(self.remove, "inner")

    def remove(self):
        for handle in self.handles:
            handle.remove()
        self.handles = []

    def _make_before(self):
        probe = self.probe
        engine = probe.engine
        names, visit, skip = probe.names, probe.native.visit, probe.patches.skip
        modules, add_model, model_begins = names.modules, names.add_model, self._model_begins
        adopt, note_size = probe.training.adopt, facts.note_size
        forward_id, recompute_id, in_backward = names.intern("forward"), names.intern("recompute"), probe.in_backward

        def before_forward(module, arguments):
            try:
                known = modules.get(id(module))
                if known is None or known.reference() is not module:
                    if engine.type is not None and isinstance(module, engine.type):
                        engine.adopt(module)      # its parts are watched another way in ZeRO-3
                        return
                    add_model(module)
                    adopt(module)
                    note_size(probe.native, module)
                    known = modules.get(id(module))
                    if known is None:
                        return
                if known.root:
                    model_begins(module, arguments)
                if known.id:
                    visit(known.id, recompute_id if in_backward() else forward_id, 1 if module.training else 0)
            except Exception as error:
                skip("module visits", error)
        return before_forward

    def _make_after(self):
        names, model_ends, skip = self.probe.names, self._model_ends, self.probe.patches.skip

        def after_forward(module, _, output):
            try:
                known = names.modules.get(id(module))
                if known is not None and known.root:
                    model_ends(module, output)
            except Exception as error:
                skip("module visits", error)
        return after_forward

    def _model_begins(self, module, arguments):
        probe = self.probe
        if module.training and probe.torch.is_grad_enabled() and not probe.in_backward() \
                and not probe.phases.inside("forward") and not probe.phases.inside("init"):
            probe.steps.plain_forward()
            probe.patches.guarded("values", probe.numbers.forward_begins, module)
            # Arguments by name are not seen here: then those of the newest batch of a loader stand for them.
            sizes = largest(arguments, probe.tensor_types) or probe.loader.sizes
            if sizes:
                probe.native.batch(*sizes)
        if probe.phases.push("forward"):
            self.local.outermost = module

    def _model_ends(self, module, output):
        if getattr(self.local, "outermost", None) is module:      # a wrapper and what it holds are both models
            self.local.outermost = None
            self.probe.phases.pop("forward")
            if not module.training and not self.probe.torch.is_grad_enabled():
                self.probe.patches.guarded("values", self.probe.numbers.evaluated, module, output)
            self.probe.native.exit_module()
            self.probe.memory.sample("forward")
