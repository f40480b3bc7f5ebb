"""First on PYTHONPATH of a dry run: arms the numerics shim, then runs the user's own sitecustomize.

Nothing is imported here but the standard library: torch may be imported late, or never, and programs that only inherit
the environment (compilers, data-loader workers) must not pay for it.
"""
import importlib.machinery
import importlib.util
import os
import sys


def _arm():
    """Calls simgpu_numerics.enable() right after `import torch`, whenever that happens."""
    class AfterTorch:
        """A finder that lets the others find torch, and adds a step behind the execution of the module."""

        def find_spec(self, name, path=None, target=None):
            if name != "torch":
                return None
            for finder in sys.meta_path:
                if finder is self or not hasattr(finder, "find_spec"):
                    continue
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    break
            else:
                return None
            loader = spec.loader
            if not hasattr(loader, "exec_module"):
                return spec
            execute = loader.exec_module

            def exec_module(module):
                loader.exec_module = execute
                execute(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                _enable()

            loader.exec_module = exec_module
            return spec

    sys.meta_path.insert(0, AfterTorch())


def _enable():
    try:
        import simgpu_numerics
        simgpu_numerics.enable()
    except Exception as error:  # a torch that the shim does not know: the program runs on, without numerics
        sys.stderr.write(f"simgpu: the numerics shim is off: {type(error).__name__}: {error}\n")


def _run_users_own():
    """Python imports one sitecustomize only; the user's must not be lost."""
    here = os.path.dirname(os.path.abspath(__file__))
    others = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if os.environ.get("SIMGPU_NUM"):  # set by the dry run
    _arm()
_run_users_own()
