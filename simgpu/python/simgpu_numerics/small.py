"""SIMGPU_NUM=small: every operation on small tensors is evaluated."""
from .settings import LARGEST


def evaluate(call):
    if call.elements() > LARGEST or call.is_plain_copy():
        return call.native()
    return call.on_cpu()
