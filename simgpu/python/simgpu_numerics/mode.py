"""The dispatch mode that sees every operator call of torch."""
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import fsdp
from .calls import Call
from .operators import operator_of

# Subclasses without data. Their operators are about shapes; inside the shim, so that it does not see them again.
_WITHOUT_DATA = {"FakeTensor", "FunctionalTensor"}


class Numerics(TorchDispatchMode):
    def __init__(self, evaluate, in_fsdp):
        super().__init__()
        self._evaluate, self._in_fsdp = evaluate, in_fsdp

    @classmethod
    def _should_skip_dynamo(cls):
        # Else torch wraps __torch_dispatch__ so that the first operator imports torch._dynamo: slow, and a TypeError
        # inside deepspeed.zero.Init, which patches tensor constructors.
        return False

    def __torch_dispatch__(self, overload, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        for kind in types:
            if kind is torch.Tensor or kind.__torch_dispatch__ is torch.Tensor.__torch_dispatch__:
                continue
            if kind.__name__ in _WITHOUT_DATA:
                return overload(*args, **kwargs)
            # A wrapper (DTensor, AsyncCollectiveTensor): it unwraps first, and its inner operators come here again.
            # Calling it here instead would run those with this mode switched off.
            return NotImplemented
        operator = operator_of(overload)
        if not operator.evaluable:
            body = fsdp.body_of(operator) if self._in_fsdp else None
            if body is None:
                return overload(*args, **kwargs)
            with self:
                return body(*args, **kwargs)
        call = Call(overload, operator, args, kwargs)
        return self._evaluate(call) if call.concerns_the_device() else call.native()
