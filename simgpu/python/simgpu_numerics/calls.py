"""One call of an operator, and how it is evaluated on the CPU."""
import sys

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from .memory import cpu_view, to_cpu, to_device, write
from .settings import VERBOSE

_named = set()


class Call:
    def __init__(self, overload, operator, args, kwargs):
        self.overload, self.operator, self.args, self.kwargs = overload, operator, args, kwargs
        self.flat, self.spec = tree_flatten((args, kwargs))
        self.tensors = [x for x in self.flat if _on_device(x)]
        device = None
        for x in self.flat:
            if isinstance(x, torch.device):
                device = x
        self.device = device if device is not None else self.tensors[0].device if self.tensors else None

    def place(self):
        """The device in whose order of work the call is; `device` may be the one that a copy goes to."""
        return self.tensors[0].device if self.tensors else self.device

    def concerns_the_device(self):
        return bool(self.tensors) or (self.device is not None and self.device.type == "cuda")

    def elements(self):
        return max((t.numel() for t in self.tensors), default=0)

    def native(self):
        """As torch does it: a launch, without an effect on values."""
        return self.overload(*self.args, **self.kwargs)

    def is_plain_copy(self):
        """A copy without conversion: the simulated device really does it, asynchronously."""
        if self.operator.name != "copy_":
            return False
        to, source = self.args[0], self.args[1]
        return (isinstance(source, torch.Tensor) and to.dtype == source.dtype and to.shape == source.shape and
                to.is_contiguous() and source.is_contiguous())

    def on_cpu(self):
        """Evaluates with the values that are on the device, and brings results and written arguments back."""
        copies = {}

        def convert(x):
            if _on_device(x):
                if id(x) not in copies:
                    copies[id(x)] = to_cpu(x)
                return copies[id(x)]
            return _without_device(x)

        args, kwargs = tree_unflatten([convert(x) for x in self.flat], self.spec)
        try:
            result = self.overload(*args, **kwargs)
        except (NotImplementedError, RuntimeError) as error:  # no CPU kernel, or a mistake: then torch says so itself
            _name_once(self.operator.name, error)
            return self.native()
        written = {}
        for position in self.operator.written:
            for tensor in _as_list(self._argument(position)):
                if isinstance(tensor, torch.Tensor) and id(tensor) in copies:
                    value = copies[id(tensor)]
                    if tensor.shape != value.shape:
                        tensor.resize_(value.shape)
                    write(tensor, value)
                    written[id(value)] = tensor
        return self._bring_back(result, written)

    def on_cpu_zeros(self):
        """Evaluates as if every float on the device were 0, without reading the device. None: not possible."""
        values = [torch.zeros(x.shape, dtype=x.dtype) if _on_device(x) else _without_device(x) for x in self.flat]
        args, kwargs = tree_unflatten(values, self.spec)
        try:
            result = self.overload(*args, **kwargs)
        except (NotImplementedError, RuntimeError) as error:
            _name_once(self.operator.name, error)
            return None
        return self._bring_back(result, {})

    def _argument(self, position):
        if position < len(self.args):
            return self.args[position]
        return self.kwargs.get(self.operator.argument_names[position])

    def _bring_back(self, result, written):
        def convert(x):
            if not isinstance(x, torch.Tensor) or x.device.type != "cpu":
                return x
            if id(x) in written:
                return written[id(x)]
            return to_device(x, self.device) if self.device.type == "cuda" else x

        flat, spec = tree_flatten(result)
        return tree_unflatten([convert(x) for x in flat], spec)


def with_index_masks(call):
    """The same call with boolean masks on the device replaced by index tensors.

    The shapes of x[mask] and of what x[mask] = y takes follow from the mask alone, which is right in `int` mode also
    where x is a float.
    """
    indices = call.args[1]
    if not any(_is_mask(i) for i in indices):
        return call
    plain = []
    for index in indices:
        if not _is_mask(index):
            plain.append(index)
        elif index.device.type == "cuda":
            plain += [to_device(part, index.device) for part in cpu_view(index).nonzero(as_tuple=True)]
        else:
            plain += index.nonzero(as_tuple=True)
    return Call(call.overload, call.operator, (call.args[0], plain) + tuple(call.args[2:]), call.kwargs)


def _is_mask(x):
    return isinstance(x, torch.Tensor) and x.dtype in (torch.bool, torch.uint8)


def _on_device(x):
    return isinstance(x, torch.Tensor) and x.device.type == "cuda"


def _without_device(x):
    if isinstance(x, torch.device) and x.type == "cuda":
        return torch.device("cpu")
    if isinstance(x, torch.Generator) and x.device.type == "cuda":
        return None
    return x


def _as_list(x):
    return x if isinstance(x, (list, tuple)) else [x]


def _name_once(name, error):
    if VERBOSE and name not in _named:
        _named.add(name)
        sys.stderr.write(f"simgpu: {name} is not evaluated on the CPU: {error}\n")
