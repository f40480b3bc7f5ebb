"""SIMGPU_NUM=int: integers and booleans are right, every computed float is 0."""
import torch

from . import queued
from .calls import with_index_masks
from .memory import zero
from .operators import INTEGER_TYPES, is_integer
from .settings import LARGEST, LARGEST_INTEGER, LARGEST_ZEROED

# Float tensors made from constants (loss scale, flags) need nothing from the device, so evaluating them does not wait.
_CONSTANTS = {"full", "ones", "scalar_tensor", "arange", "linspace"}


def evaluate(call):
    if not call.tensors:
        return _make(call)
    floats = any(not is_integer(t) for t in call.tensors)
    if floats and call.operator.indexing:
        call = with_index_masks(call)
    if floats or call.elements() > LARGEST_INTEGER:
        return _skipped(call)
    if call.is_plain_copy():
        return call.native()
    return in_order(call)


def in_order(call):
    """Evaluates an operation on integers without waiting for the stream, where that is possible."""
    state = queued.state_of_stream(call.place())
    if state == queued.IDLE:
        return call.on_cpu()
    result = queued.attempt(call)
    if result is not NotImplemented:
        return result
    return call.native() if state == queued.CAPTURING else call.on_cpu()


def _make(call):
    """Operators without tensors on the device: factories, and copies to it."""
    if any(isinstance(x, torch.Tensor) for x in call.flat):
        return call.native()  # converts on the host, and copies for real
    if queued.state_of_stream(call.place()) == queued.CAPTURING:
        return in_order(call)  # a copy from the host would be made at every replay
    elements = torch.Size(call.args[0]).numel() if call.args and isinstance(call.args[0], (list, tuple)) else 0
    if call.kwargs.get("dtype") in INTEGER_TYPES:
        return call.on_cpu() if elements <= LARGEST_INTEGER else _zeroed(call.native())
    if call.operator.name == "zeros":
        result = call.native()
        zero(result)
        return result
    if call.operator.name in _CONSTANTS and elements <= LARGEST:
        return call.on_cpu()
    return _zeroed(call.native())


def _skipped(call):
    """An operation whose kernel does nothing: what it returns must not be recycled memory.

    DeepSpeed looks at isfinite(gradient.amax()), and would skip every step on garbage. So every float is 0: float
    results are set to 0, and integer or boolean results are those for inputs of 0. Neither reads the device, so nothing
    waits for it.
    """
    operator = call.operator
    if operator.written:
        return call.native()
    if queued.state_of_stream(call.place()) == queued.CAPTURING:
        return _zeroed(call.native(), operator)
    small = sum(t.numel() for t in call.tensors) <= LARGEST
    result = None
    if not (small and (operator.shape_from_values or operator.has_integer_results)):
        result = _zeroed(call.native(), operator)
        if not (small and operator.has_integer_results):
            return result
    evaluated = call.on_cpu_zeros()
    if evaluated is not None:
        return evaluated
    return result if result is not None else call.native()


def _zeroed(result, operator=None):
    for tensor in result if isinstance(result, (list, tuple)) else [result]:
        if not isinstance(tensor, torch.Tensor) or tensor.device.type != "cuda":
            continue
        if is_integer(tensor) and operator is not None:
            operator.has_integer_results = True
        if is_integer(tensor) or tensor.numel() <= LARGEST_ZEROED:
            zero(tensor)
    return result
