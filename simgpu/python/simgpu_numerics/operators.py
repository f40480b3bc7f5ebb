"""What the shim has to know about an operator of torch, worked out once for each."""
import torch

# Never evaluated: they make or change storage, look at no element, or are the way to the CPU themselves.
_NATIVE = {
    "record_stream", "set_", "resize_", "_resize_output_", "is_pinned", "_pin_memory", "is_same_size", "lift_fresh",
    "empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided",
    "detach", "alias", "view", "_unsafe_view", "_reshape_alias", "as_strided",
    "_local_scalar_dense",
}

# The shape of the result depends on values.
_SHAPE_FROM_VALUES = {
    "nonzero", "unique_dim", "_unique2", "_unique", "unique_consecutive", "masked_select", "bincount", "histc",
}

_INDEXING = {"index", "index_put", "index_put_", "_unsafe_index", "_unsafe_index_put", "_index_put_impl_"}


class Operator:
    __slots__ = ("name", "namespace", "evaluable", "written", "argument_names", "shape_from_values", "indexing",
                 "has_integer_results")

    def __init__(self, overload):
        schema = overload._schema
        self.name = schema.name.split("::")[1]
        self.namespace = overload.namespace
        is_view = any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)
        self.evaluable = self.namespace == "aten" and self.name not in _NATIVE and not is_view
        self.written = [i for i, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write]
        self.argument_names = [a.name for a in schema.arguments]
        self.shape_from_values = self.name in _SHAPE_FROM_VALUES
        self.indexing = self.name in _INDEXING
        self.has_integer_results = False  # learned at the first call (integers.py)


_known = {}


def operator_of(overload):
    operator = _known.get(overload)
    if operator is None:
        operator = _known[overload] = Operator(overload)
    return operator


def is_integer(tensor):
    """Integers and booleans; what is neither is float or complex."""
    return not (tensor.is_floating_point() or tensor.is_complex())


INTEGER_TYPES = {torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool}
