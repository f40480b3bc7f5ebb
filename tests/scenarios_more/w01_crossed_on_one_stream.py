"""W01 - two communicators, opposite order, on one stream.

Two ranks queue the calls of A and B without waiting in between.  Both communicators use the same stream, so in step 3
rank 0's A stands before B and rank 1's B before A: neither can begin.  Nothing has to be guessed, and no threshold is
needed.
"""
from rankscript import run

RANKS = 2
BLOCKS = {0, 1}
MODES = ("run-ahead",)
MEMBERS = {"A": [0, 1], "B": [0, 1]}

EXPECT = {
    "verdict": "hang",
    "within": 4,
    "findings": [{
        "class": "comm-order-cycle", "suspects": [], "waiting": [0, 1], "step": 3, "call": 3, "certainty": "proven",
        "says": [r"same stream behind"],
        "says_stacks": [r"w01_crossed_on_one_stream\.py:\d+ main"],
        "fix": [r"same order", r"stream of its own"],
    }],
    "forbid": [r"\bnetwork\b"],
}


def main(r):
    a, b = r.comm("A", [0, 1]), r.comm("B", [0, 1])
    b.stream = a.stream
    for n in r.steps(3):
        if n == 3:
            r.fault()
        first, second = (b, a) if n == 3 and r.rank == 1 else (a, b)
        first.all_reduce(2000, wait=False)
        second.all_reduce(2000, wait=False)
        r.sync()


if __name__ == "__main__":
    run(main)
