"""Dispatch modes belong to a thread, so the program's other threads get their own (autograd's inherit theirs)."""
import threading


def cover(new_mode):
    """Enters a mode in this thread, and in every Python thread that begins later and is waited for."""
    new_mode().__enter__()
    begin = getattr(threading.Thread, "_bootstrap_inner", None)    # in every Python from 3.8 to 3.14
    if begin is None:
        return

    def begin_with_mode(thread):
        # Not in daemon threads: one that is still alive when the interpreter ends is unwound, and giving back its mode
        # then needs the interpreter, which aborts the process.
        if thread.daemon:
            begin(thread)
            return
        with new_mode():
            begin(thread)

    threading.Thread._bootstrap_inner = begin_with_mode
