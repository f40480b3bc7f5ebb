"""torch.compile and the shim.

torch skips compilation while a dispatch mode is active, so a compiled function of the program is run as it stands: its
compiled form would be one kernel, which does nothing here. But inside the mode's own code the mode is off, and torch
would compile that: each function of the shim is marked as not to be compiled.
"""
import inspect
import sys


def keep_shim_out(torch):
    # What torch._dynamo.disable comes down to, without importing torch._dynamo (slow, and nobody may need it).
    try:
        frames = torch._C._dynamo.eval_frame
        skip = frames._FrameExecStrategy(frames._FrameAction.SKIP, frames._FrameAction.SKIP)    # this and what it calls
        mark = frames.set_code_exec_strategy
    except AttributeError:      # another version of torch: compiled programs are slower there, and as right
        return
    package = __name__.rpartition(".")[0]
    for name, module in list(sys.modules.items()):
        if name == package or name.startswith(package + "."):
            for code in _codes_of(module):
                mark(code, skip)


def _codes_of(module):
    for value in vars(module).values():
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(value):
            yield from _with_inner(value.__code__)
        elif inspect.isclass(value):
            for member in vars(value).values():
                function = getattr(member, "__func__", member)
                if inspect.isfunction(function):
                    yield from _with_inner(function.__code__)


def _with_inner(code):
    yield code
    for constant in code.co_consts:
        if inspect.iscode(constant):
            yield from _with_inner(constant)
