"""W08 - the process of rank 2 is stopped (SIGSTOP): it is frozen, not busy."""
import os
import signal

from rankscript import run

RANKS = 3
BLOCKS = {0, 1, 2}

EXPECT = {
    "verdict": "hang",
    "within": 20,
    "findings": [{"class": "rank-frozen", "suspects": [2], "waiting": [0, 1],
                  "says": [r"state T", r"stopped"], "fix": [r"kill -CONT \d+"]}],
}


def main(r):
    c0 = r.world()
    for n in r.steps(20):
        if n == 6 and r.rank == 2:
            r.sync()
            r.compute(1)                     # known to the monitor by then
            r.fault()
            os.kill(os.getpid(), signal.SIGSTOP)
        c0.all_reduce(1000)


if __name__ == "__main__":
    run(main)
