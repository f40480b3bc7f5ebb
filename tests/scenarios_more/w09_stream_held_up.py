"""W09 - something of the program's own on rank 1's stream does not end: it never reaches a call that the others have started."""
import ctypes

from rankscript import run

RANKS = 3
BLOCKS = {0, 1, 2}

EXPECT = {
    "verdict": "hang",
    "within": 20,
    "findings": [{"class": "rank-frozen", "suspects": [1], "waiting": [0, 2], "call": 4,
                  "says": [r"stream has not reached call 4 of world", r"started"],
                  "fix": [r"kernel"]}],
}


def main(r):
    c0 = r.world()
    for n in r.steps(6):
        if n == 4 and r.rank == 1:
            r.fault()
            wait_for_ever = ctypes.cast(ctypes.CDLL(None).pause, ctypes.c_void_p)
            r.native.cudaLaunchHostFunc(c0.stream, wait_for_ever, None)
        c0.all_reduce(1000)


if __name__ == "__main__":
    run(main)
