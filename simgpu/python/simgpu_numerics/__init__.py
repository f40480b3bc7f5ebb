"""Numerics for the simulated GPU.

Its kernels do nothing. A training program needs some results all the same: the sizes that object collectives exchange,
token counts, masks, the overflow flag. Device memory is host memory, so such operations can be evaluated by torch's CPU
kernels. SIMGPU_NUM says which:

    off     none: launches are counted, memory is accounted, values are whatever was copied to the device
    int     integers and booleans are right, every computed float is 0; the float path stays asynchronous, so that the
            host runs ahead as on a GPU
    small   every operation on tensors of at most SIMGPU_SMALL elements (65536) is right: losses really fall

All files of the shim are in a directory named simgpu_python, so that its frames can be told from the program's.
"""
from .settings import MODE


def enable():
    """Called once, right after torch was imported."""
    import torch
    from . import backends
    from .ending import settle_at_exit
    from .printing import print_from_cpu
    backends.restrict(torch, MODE)
    print_from_cpu(torch)
    settle_at_exit()
    if MODE == "off":
        return
    from .mode import Numerics
    from .threads import cover
    if MODE == "small":
        from .small import evaluate
    else:
        from .integers import evaluate
    from .compilation import keep_shim_out
    keep_shim_out(torch)
    cover(lambda: Numerics(evaluate, in_fsdp=MODE == "small"))
