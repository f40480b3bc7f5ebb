"""The Python side is armed while the interpreter goes away: in an exit handler, or when modules are taken down."""
import atexit
import sys
import time

from rank import lib

arm, sleep, write = lib.arm, time.sleep, sys.stdout.write


def late():
    for _ in range(3):
        arm()  # without the GIL, as the helper thread does
        sleep(0.01)
    write("{}\n")


class Kept:
    def __init__(self, late):
        self.late = late

    def __del__(self):
        self.late()


if sys.argv[1] == "atexit":
    atexit.register(late)
else:
    sys.kept = Kept(late)
