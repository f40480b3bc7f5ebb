"""W06 - the first stage of a pipeline is killed; the second waits in a receive.  The death is the cause."""
import os
import signal

from rankscript import run

RANKS = 2
BLOCKS = {1}
EXITS = {0: -signal.SIGKILL}
MODES = ("blocking",)

EXPECT = {
    "verdict": "hang",
    "within": 6,
    "findings": [{"class": "rank-dead", "suspects": [0]},
                 {"class": "p2p-unmatched", "suspects": [0], "waiting": [1], "consequence_of": "rank-dead", "step": 3, "call": 3,
                  "says": [r"receive 3 of world from rank 0", r"has ended"]}],
}


def main(r):
    c0 = r.world()
    for n in r.steps(3):
        if n == 3:
            r.fault()
            if r.rank == 0:
                r.compute(1)
                os.kill(os.getpid(), signal.SIGKILL)
        if r.rank == 0:
            c0.send(200_000, 1)
        else:
            c0.recv(200_000, 0)


if __name__ == "__main__":
    run(main)
