"""The end of a program that has just made a backward pass.

The thread in which autograd works for a device lets go of a pass after it has said that the pass is over, and needs the
interpreter for that. When this one is ending by then, the thread is unwound, and the process aborts: "terminate called
without an active exception" (torch 2.14.1: ~ThreadLocalState in ~GraphTask). That is rare where there is a core for every
thread; simulated ranks share few, and a program that has nothing wrong would end by SIGABRT.
"""
import atexit
import os
import time

_NAME = "pt_autograd_"    # what torch names these threads
_TASKS = "/proc/self/task"
_SECONDS = 2    # a thread that works on so long is not letting go of anything


def settle_at_exit():
    atexit.register(_settle)


def _settle():
    """Waits until those threads sleep. After a pause in which the interpreter was free they do not wait for it."""
    end = time.monotonic() + _SECONDS
    try:
        threads = [task for task in os.listdir(_TASKS) if _read(task, "comm").startswith(_NAME)]
        while threads and time.monotonic() < end:
            time.sleep(0.001)
            if all(_read(task, "stat").rpartition(") ")[2].startswith("S") for task in threads):
                return
    except OSError:    # one is gone
        pass


def _read(task, name):
    with open(f"{_TASKS}/{task}/{name}", errors="replace") as file:
        return file.read()
