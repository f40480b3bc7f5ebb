"""Tells libdshang.so when torch.distributed is imported, so that ranks that wait for each other before any communicator are seen.

Started by dshang.pth in every Python process that has the preload; it imports nothing before that import comes, and cannot raise.
"""
import sys


class _Watch:
    """Stands in front of the finders of modules and finds none itself."""

    def find_spec(self, name, path=None, target=None):
        if name == "torch.distributed":
            try:
                sys.meta_path.remove(self)
                import ctypes

                ctypes.CDLL(None).dshang_torch_distributed_imported()
            except Exception:    # another finder's list, or a preload without it: the rank wakes later
                pass
        return None


def watch():
    try:
        sys.meta_path.insert(0, _Watch())
    except Exception:
        pass
