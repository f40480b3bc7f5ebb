"""Where a value first stops being finite: every module of one forward, and every parameter.

That costs a small kernel a module, so it is done for the first training forward, and for one behind a loss that was not
finite; never for every step.  Each output is summed into one float, which is not finite if one of its elements is not."""
import sys

from dshang_probe.digest import is_finite
from dshang_probe.names import without_wrappers

_MOST_FORWARDS = 3
_MOST_MODULES = 2048
_INFINITE = float("inf")


class Watch:
    def __init__(self, probe):
        self.probe = probe
        self.wanted, self.left = True, _MOST_FORWARDS
        self.after_bad = self.on_device = False
        self.handle = None
        self.sums, self.labels = [], []       # (module, what, type) of each sum
        self.step = None
        self.told = set()

    def request(self):
        """A loss was not finite: the next training forward is worth it."""
        self.wanted = self.after_bad = True

    def forward_begins(self, model):
        if self.handle is not None:
            self.forward_ends()
        if not self.wanted or not self.left or self.probe.compiled.gone or self._is_watched_by_others():
            return
        first = next(iter(model.parameters()), None)
        if first is None or (first.device.type == "cuda" and not self.probe.later.possible()):
            return
        self.wanted, self.on_device = False, first.device.type == "cuda"
        self.left -= 1
        self.step = self.probe.steps.announced
        module = sys.modules["torch.nn.modules.module"]
        self.handle = module.register_module_forward_hook(self._after)
        if self.after_bad:
            self.probe.patches.guarded("values", self._look_at_parameters, model)

    def _is_watched_by_others(self):
        """A dispatch mode of the program sees every operation, ours as well.  (The simulated GPU has one, too.)"""
        dispatch = sys.modules.get("torch.utils._python_dispatch")
        current = getattr(dispatch, "_get_current_dispatch_mode", None)
        mode = current() if current is not None else None
        return mode is not None and not type(mode).__module__.startswith("simgpu")

    def forward_ends(self):
        """The forward is over: backward begins, or another forward."""
        if self.handle is None:
            return
        self.handle.remove()
        self.handle = None
        sums, labels, self.sums, self.labels = self.sums, self.labels, [], []
        step = self.step
        self._when_there(sums, lambda values: self._tell_module(step, labels, values))

    def stop(self):
        """A compiler is about to look at the hooks."""
        if self.handle is not None:
            self.handle.remove()
            self.handle = None
        self.sums, self.labels = [], []

    def _after(self, module, inputs, output):
        try:
            known = self.probe.names.of_module(module)
            if known is None or not known.id or len(self.labels) >= _MOST_MODULES or self.probe.in_backward():
                return
            if self.on_device and not self.probe.later.possible():    # a graph of this very module is being captured
                return
            for what, values in (("input", inputs), ("output", output)):
                tensor = self._first_float(values)
                if tensor is not None:
                    self._add(tensor, (known.id, what, str(tensor.dtype).rsplit(".", 1)[-1]))
        except Exception as error:
            self.probe.patches.skip("values of modules", error)

    def _first_float(self, values):
        plain = self.probe.torch.Tensor
        if isinstance(values, dict):
            values = list(values.values())
        for value in values if isinstance(values, (tuple, list)) else (values,):
            if type(value) is plain and value.is_floating_point() and value.numel():
                return value
        return None

    def _add(self, tensor, label):
        torch = self.probe.torch
        with torch.no_grad():
            self.sums.append(tensor.detach().sum(dtype=torch.float32))
        self.labels.append(label)

    def _when_there(self, sums, function):
        """function([float]) of sums on one device."""
        torch, later = self.probe.torch, self.probe.later
        devices = {one.device for one in sums}
        if len(devices) != 1:
            return
        device = devices.pop()
        if device.type == "cuda" and not later.possible():
            return
        with torch.no_grad():
            together = torch.stack(sums)
            if device.type == "cpu":
                return function(together.tolist())
            room = torch.empty(len(sums), dtype=torch.float32, device="cpu", pin_memory=True)
            room.copy_(together, non_blocking=True)
        later.when_copied(device, lambda: function(room.tolist()))

    def _tell_module(self, step, labels, values):
        """The first module in the order in which they ended, so the innermost one."""
        entered, found = {}, None
        for (module, what, kind), value in zip(labels, values):
            if what == "input":
                entered[module] = is_finite(value)
            elif not is_finite(value):
                masked = value == -_INFINITE          # a mask does that, too, in healthy models
                if found is None or (found[0] and not masked):
                    found = masked, module, kind, value
                if not masked:
                    break
        if found is None or ("mask" if found[0] else "module") in self.told:
            return
        masked, module, kind, value = found
        self.told.update(["mask"] if masked else ["mask", "module"])
        name = next((text for text, number in self.probe.names.ids.items() if number == module), "-")
        arrived = "-" if module not in entered else "finite" if entered[module] else "not"
        self.probe.native.note("nan.module", "step=%s module=%s input=%s output=%s value=%s after_bad=%d" % (
            step, name.replace(" ", "_"), arrived, kind, "%.6g" % value, self.after_bad))

    def _look_at_parameters(self, model):
        torch = self.probe.torch
        names, sums = [], []
        with torch.no_grad():
            for name, parameter in without_wrappers(model).named_parameters():
                own = getattr(parameter, "ds_tensor", parameter)              # the shard that this rank has
                own = getattr(own, "_local_tensor", own).detach()
                if own.is_floating_point() and own.numel() and len(names) < _MOST_MODULES:
                    names.append(name)
                    sums.append(own.sum(dtype=torch.float32))
        step = self.step
        self._when_there(sums, lambda values: self._tell_parameters(step, names, values))

    def _tell_parameters(self, step, names, values):
        bad = [name for name, value in zip(names, values) if not is_finite(value)]
        if "parameters" not in self.told:
            self.told.add("parameters")
            self.probe.native.note("nan.parameters", "step=%s bad=%d of=%d first=%s" % (
                step, len(bad), len(names), bad[0].replace(" ", "_") if bad else "-"))
