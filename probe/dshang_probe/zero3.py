"""DeepSpeed ZeRO-3: module visits, the parameters of each gather, the trace mode, and the constructs around them.

Written against DeepSpeed 0.19.8; private names are those of the class PartitionedParameterCoordinator, stable since 0.9.
"""
import sys
import threading
import weakref

_NOT_AVAILABLE = "NOT_AVAILABLE"
_MOST_BREAKS = 500            # different ones that are told with the modules' names


def in_backward_of(torch):
    """A function that tells whether the calling thread runs inside an autograd graph (a recompute, in a forward)."""
    task = getattr(torch._C, "_current_graph_task_id", None)
    if task is not None:
        return lambda: task() != -1
    main = threading.main_thread()
    return lambda: threading.current_thread() is not main


def _parameter_names(params):
    """{ds_id: name} of those parameters whose names DeepSpeed knows."""
    known = sys.modules["deepspeed.utils.debug"].param_names
    return {p.ds_id: known[p] for p in params if p in known}


class Zero3:
    def __init__(self, native, names, phases, patches):
        self.native, self.names, self.phases, self.patches = native, names, phases, patches
        self.modes = weakref.WeakKeyDictionary()      # by coordinator: each engine has one
        self.recorded = weakref.WeakKeyDictionary()   # by coordinator: the pass its trace was recorded in
        self.backward_in = set()                      # id(coordinator): its pass has come to backward
        self.breaks = set()

    def watch_coordinator(self, module):
        """deepspeed.runtime.zero.partitioned_param_coordinator"""
        coordinator = module.PartitionedParameterCoordinator
        replace = self.patches.replace
        replace(coordinator, "fetch_sub_module", self._around_fetch, "inner")
        replace(coordinator, "_PartitionedParameterCoordinator__all_gather_params", self._around_gather, "inner")
        replace(coordinator, "reset_step", self._around_reset, "inner")
        replace(coordinator, "_invalidate_trace", self._around_invalidate, "inner")

    def _around_fetch(self, original):
        names, native, patches = self.names, self.native, self.patches
        visit = native.visit
        forward_id, backward_id, recompute_id = (names.intern(p) for p in ("forward", "backward", "recompute"))
        in_backward = in_backward_of(sys.modules["torch"])
        modules, backward_in = names.modules, self.backward_in

        def fetch_sub_module(coordinator, module, *args, **kwargs):
            try:
                known = modules.get(id(module))
                if known is None or known.reference() is not module:
                    names.add_model(module)       # a part that was put in after initialize()
                    known = modules[id(module)]
                if known.id:
                    forward = kwargs["forward"] if "forward" in kwargs else args[0] if args else not in_backward()
                    phase = (recompute_id if in_backward() else forward_id) if forward else backward_id
                    if not forward:
                        backward_in.add(id(coordinator))
                    visit(known.id, phase, 1 if module.training else 0)
            except Exception as error:
                patches.skip("module visits", error)
            return original(coordinator, module, *args, **kwargs)
        return fetch_sub_module

    def _around_gather(self, original):
        names, native, patches = self.names, self.native, self.patches

        def all_gather_params(coordinator, params, *args, **kwargs):
            try:
                numbers = tuple(sorted(p.ds_id for p in params if p.ds_status.name == _NOT_AVAILABLE))
                if numbers:
                    native.gather(*(names.gathers.get(numbers) or names.add_gather(numbers, _parameter_names(params))))
            except Exception as error:
                patches.skip("gathers", error)
            return original(coordinator, params, *args, **kwargs)
        return all_gather_params

    def _around_reset(self, original):
        guarded = self.patches.guarded

        def reset_step(coordinator, *args, **kwargs):
            result = original(coordinator, *args, **kwargs)
            guarded("recorded passes", self._pass_ends, coordinator)
            self._tell_mode(coordinator)
            return result
        return reset_step

    def _pass_ends(self, coordinator):
        """The root's next forward begins; what was recorded since its last one may be a trace now."""
        if self.modes.get(coordinator) == "RECORD" and coordinator.is_complete_trace():
            self.recorded[coordinator] = "training" if id(coordinator) in self.backward_in else "forward"
        self.backward_in.discard(id(coordinator))

    def _around_invalidate(self, original):
        guarded = self.patches.guarded

        def invalidate_trace(coordinator, *args, **kwargs):
            what = guarded("broken traces", self._what_breaks, coordinator, sys._getframe(1))
            result = original(coordinator, *args, **kwargs)
            self._tell_mode(coordinator, what or "")
            return result
        return invalidate_trace

    def _what_breaks(self, coordinator, caller):
        """" got=<module> expected=<module> recorded=<pass>": the module that came, the one that the trace holds there, and
        whether the trace is of a training pass or of one without backward."""
        module = caller.f_locals.get("sub_module")      # of trace_prologue
        if module is None:
            return ""
        order = coordinator._PartitionedParameterCoordinator__submodule_order
        step = coordinator._PartitionedParameterCoordinator__step_id
        expected = self._name_of(order[step]) if step < len(order) else "-"
        text = " got=%s expected=%s" % (self._name_of(module), expected)
        if coordinator in self.recorded:
            text += " recorded=" + self.recorded[coordinator]
        if len(self.breaks) < _MOST_BREAKS:
            self.breaks.add(text)
        return text if text in self.breaks else ""

    def _name_of(self, module):
        known = self.names.of_module(module)
        if known is not None and known.id:
            name = next((text for text, number in self.names.ids.items() if number == known.id), "")
        else:                                           # without parameters: DeepSpeed names it
            name = sys.modules["deepspeed.utils.debug"].module_names.get(module, "")
        return (name or type(module).__name__).replace(" ", "_")

    def _tell_mode(self, coordinator, what=""):
        try:
            mode = ("COMPLETE" if coordinator.is_complete_trace() else
                    "RECORD" if coordinator.is_record_trace() else "INVALID")
            if mode != self.modes.get(coordinator):
                self.modes[coordinator] = mode
                self.native.trace_mode(self.names.intern(mode + what))
        except Exception as error:
            self.patches.skip("trace mode", error)

    def watch_parameters(self, module):
        """deepspeed.runtime.zero.partition_parameters"""
        push, pop = self.phases.push, self.phases.pop

        def on_enter(original):
            def enter(context):
                push("init")
                return original(context)
            return enter

        def on_exit(original):
            def leave(context, *args):
                try:
                    return original(context, *args)
                finally:
                    pop("init")
            return leave
        self.patches.replace(module.Init, "__enter__", on_enter)
        self.patches.replace(module.Init, "__exit__", on_exit)
        # Only entering and leaving gather and broadcast; the body belongs to the job.
        self.patches.replace(module.GatheredParameters, "__enter__", self.phases.around("gather"))
        self.patches.replace(module.GatheredParameters, "__exit__", self.phases.around("gather"))
