"""Whose code the probe may run: packages whose `__len__` and the like are known to do no work.

A program's own may read a file to its end, draw random numbers or call a collective, so it is left alone.
"""

_PACKAGES = frozenset(("builtins", "collections", "torch", "deepspeed", "transformers", "accelerate", "datasets",
                       "lightning", "pytorch_lightning", "torchvision"))


def is_known(kind, method):
    """Whether objects of this type take `method` from one of these packages."""
    for base in kind.__mro__:
        if method in base.__dict__:
            return base.__module__.split(".", 1)[0] in _PACKAGES
    return False


def own_attribute(value, name):
    """What the object itself holds under this name; None where it holds nothing, or its type would compute it."""
    return getattr(value, "__dict__", {}).get(name) if type(value).__getattribute__ is object.__getattribute__ else None
