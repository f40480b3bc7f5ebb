"""Integer operations in the order of the stream.

Evaluating one at once waits for what is queued in front of it, where a GPU would not: behind a collective that hangs, the
program would stop in the shim instead of at its next synchronisation. So where the stream is busy the operation is described
to the simulated device, which executes it when the stream comes to it (simgpu/tensor/work.h); in a capture it becomes part of
the graph. What is not in the tables below is still evaluated at once.
"""
import ctypes

import torch

_process = ctypes.CDLL(None)    # the simulated runtime is preloaded
_MOST_DIMS = 8

_TYPES = {torch.bool: 0, torch.uint8: 1, torch.int8: 2, torch.int16: 3, torch.int32: 4, torch.int64: 5,
          torch.float16: 6, torch.bfloat16: 7, torch.float32: 8, torch.float64: 9}
_FIRST_FLOAT = 6

_CODES = {name: code for code, name in enumerate((
    "copy", "neg", "abs", "bitwise_not", "logical_not",
    "add", "sub", "mul", "floor_divide", "remainder", "maximum", "minimum",
    "bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor",
    "eq", "ne", "lt", "le", "gt", "ge", "where",
    "sum", "prod", "any", "all", "amax", "amin", "cumsum"))}

_UNARY = {"neg", "abs", "bitwise_not", "logical_not"}
_BINARY = {"add", "sub", "mul", "floor_divide", "remainder", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor",
           "logical_and", "logical_or", "logical_xor", "eq", "ne", "lt", "le", "gt", "ge"}
_SAME_AS = {"__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor"}
_COPIES = {"clone", "_to_copy", "lift_fresh_copy"}
_FILLS = {"fill_": None, "zero_": 0, "zeros_like": 0, "ones_like": 1, "full_like": None, "zeros": 0, "ones": 1, "full": None,
          "scalar_tensor": None, "new_zeros": 0, "new_ones": 1, "new_full": None}


class _Operand(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("scalar", ctypes.c_int64), ("strides", ctypes.c_int64 * _MOST_DIMS),
                ("type", ctypes.c_int32)]


class _Work(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int32), ("dims", ctypes.c_int32), ("inputs", ctypes.c_int32),
                ("sizes", ctypes.c_int64 * _MOST_DIMS), ("out", _Operand), ("operands", _Operand * 3)]


class _Unfit(Exception):
    """Not one of the operations that can be described."""


IDLE, BUSY, CAPTURING = 0, 1, 2


def state_of_stream(device):
    index = device.index if device.index is not None else torch.cuda.current_device()
    return _process.simgpu_stream_state(index, ctypes.c_void_p(torch.cuda.current_stream(device).cuda_stream))


def attempt(call):
    """Queues the call and returns its result; NotImplemented where that is not possible."""
    name = call.operator.name
    describe = _DESCRIPTIONS.get(name) or _DESCRIPTIONS.get(name[:-1] if name.endswith("_") else name)
    # A number that is no integer: the result is a float, or is rounded in a way of its own.
    if describe is None or any(isinstance(x, (float, complex)) for x in call.flat):
        return NotImplemented
    out = call.native()
    if not isinstance(out, torch.Tensor) or out.device.type != "cuda":
        return NotImplemented
    try:
        works = [_work(code, target, sources) for code, target, sources in describe(name, call, out)]
    except (_Unfit, RuntimeError):      # the second: shapes that cannot be looked at in the way that is needed
        return NotImplemented
    stream = ctypes.c_void_p(torch.cuda.current_stream(out.device).cuda_stream)
    for work in works:
        _process.simgpu_tensor_work(ctypes.byref(work), out.device.index, stream)
    return out


# --- from a call to (code, target, sources), each of which is one piece of work ---

def _unary(name, call, out):
    source = call.args[0]
    if name.rstrip("_") == "bitwise_not" and source.dtype == torch.bool:
        return [("logical_not", out, [source])]
    return [(name.rstrip("_"), out, [source])]


def _binary(name, call, out):
    if call.kwargs.get("alpha", 1) != 1 or len(call.args) != 2:
        raise _Unfit
    plain = _SAME_AS.get(name) or (name[:-1] if name.endswith("_") else name)
    return [(plain, out, list(call.args))]


def _copy(name, call, out):
    return [("copy", out, [call.args[1 if name == "copy_" else 0]])]


def _fill(name, call, out):
    value = _FILLS[name]
    if value is None:
        value = call.args[-1] if "fill_value" not in call.kwargs else call.kwargs["fill_value"]
    return [("copy", out, [value])]


def _arange(name, call, out):
    start, step = (0, 1) if len(call.args) == 1 else (call.args[0], call.args[2] if len(call.args) > 2 else 1)
    return [("copy", out, [step]), ("cumsum", out, [out]), ("add", out, [out, start - step])]


def _where(name, call, out):
    if len(call.args) != 3:
        raise _Unfit
    return [("where", out, list(call.args))]


def _masked_fill(name, call, out):
    return [("where", out, [call.args[1], call.args[2], call.args[0]])]


def _clamp(name, call, out):
    bounds = list(call.args[1:]) + [None, None]
    if name.rstrip("_") == "clamp":
        low, high = call.kwargs.get("min", bounds[0]), call.kwargs.get("max", bounds[1])
    else:
        low, high = (bounds[0], None) if name.rstrip("_") == "clamp_min" else (None, bounds[0])
    works, source = [], call.args[0]
    for code, bound in (("maximum", low), ("minimum", high)):
        if bound is not None:
            works.append((code, out, [source, bound]))
            source = out
    return works


def _reduction(name, call, out):
    source = call.args[0]
    dims = call.args[1] if len(call.args) > 1 else call.kwargs.get("dim")
    code = {"max": "amax", "min": "amin"}.get(name, name)
    if source.numel() == 0 or (code != name and dims is not None):
        raise _Unfit
    if dims is None or dims == []:
        dims = range(source.dim())
    dims = {d % max(source.dim(), 1) for d in ([dims] if isinstance(dims, int) else dims)}
    kept = [1 if d in dims else size for d, size in enumerate(source.shape)]
    return [(code, out.view(kept).expand(source.shape), [source])]


def _cumulative(name, call, out):
    source, dim = call.args[0], call.args[1]
    if source.dim() == 0:
        raise _Unfit
    return [("cumsum", out.movedim(dim, -1), [source.movedim(dim, -1)])]


def _concatenation(name, call, out):
    pieces, works, at = call.args[0], [], 0
    dim = call.args[1] if len(call.args) > 1 else call.kwargs.get("dim", 0)
    for number, piece in enumerate(pieces):
        if name == "stack":
            works.append(("copy", out.select(dim, number), [piece]))
        elif piece.numel() > 0:
            works.append(("copy", out.narrow(dim, at, piece.shape[dim]), [piece]))
            at += piece.shape[dim]
    return works


_DESCRIPTIONS = {
    **dict.fromkeys(_UNARY, _unary), **dict.fromkeys(_BINARY | set(_SAME_AS), _binary), **dict.fromkeys(_FILLS, _fill),
    **dict.fromkeys(_COPIES | {"copy_"}, _copy), "arange": _arange, "where": _where, "masked_fill": _masked_fill,
    **dict.fromkeys(("clamp", "clamp_min", "clamp_max"), _clamp),
    **dict.fromkeys(("sum", "prod", "any", "all", "amax", "amin", "max", "min"), _reduction),
    "cumsum": _cumulative, "cat": _concatenation, "stack": _concatenation,
}


# --- from that to the structure ---

def _work(code, target, sources):
    if target.dim() > _MOST_DIMS or (code != "copy" and _TYPES.get(target.dtype, _FIRST_FLOAT) >= _FIRST_FLOAT):
        raise _Unfit
    work = _Work(code=_CODES[code], dims=target.dim(), inputs=len(sources))
    for dim, size in enumerate(target.shape):
        work.sizes[dim] = size
    _describe(work.out, target, target.shape, most=len(_TYPES))
    for operand, source in zip(work.operands, sources):
        _describe(operand, source, target.shape, most=_FIRST_FLOAT)
    return work


def _describe(operand, x, sizes, most):
    if isinstance(x, torch.Tensor) and x.device.type == "cpu" and x.dim() == 0 and _TYPES.get(x.dtype, most) < most:
        x = x.item()
    if isinstance(x, (bool, int)):
        operand.scalar = int(x)
        return
    if not isinstance(x, torch.Tensor) or x.device.type != "cuda" or _TYPES.get(x.dtype, most) >= most:
        raise _Unfit
    operand.type, operand.data = _TYPES[x.dtype], x.data_ptr()
    for dim, stride in enumerate(x.expand(sizes).stride()):
        operand.strides[dim] = stride
