"""Stands where torch stands: the names that the probe touches, nothing else."""
import types

from torch import autograd, distributed  # noqa: F401

__version__ = "stand-in"
version = types.SimpleNamespace(cuda="0.0")
graph_task = [-1]
Tensor = type("Tensor", (), {})
_C = types.SimpleNamespace(_current_graph_task_id=lambda: graph_task[0])


def is_grad_enabled():
    return True


def initial_seed():
    return 7


from torch import serialization  # noqa: E402
from torch.serialization import load, save  # noqa: E402,F401
from torch.nn.modules import module  # noqa: E402,F401
from torch.optim import optimizer  # noqa: E402,F401
from torch.utils.data import dataloader  # noqa: E402,F401
