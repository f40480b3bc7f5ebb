"""Dispatch modes belong to a thread, so every thread of the program gets one (autograd's inherit theirs)."""
import threading


def cover(new_mode):
    """Enters a mode of its own in this thread, and in every Python thread that begins later."""
    _enter(new_mode)
    begin = getattr(threading.Thread, "_bootstrap_inner", None)    # in every Python from 3.8 to 3.14
    if begin is None:
        return

    def begin_with_mode(thread):
        _enter(new_mode)
        begin(thread)

    threading.Thread._bootstrap_inner = begin_with_mode


def _enter(new_mode):
    new_mode().__enter__()
