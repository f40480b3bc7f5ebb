"""W03 - a pipeline of two stages whose first stage makes one micro-batch less in step 3.

Rank 1 waits in its 12th receive; rank 0 has gone on to the all-reduce at the end of the step.  Of the two it is rank 0 that
departs from its own earlier steps.
"""
from rankscript import run

RANKS = 2
BLOCKS = {0, 1}
MODES = ("blocking",)

EXPECT = {
    "verdict": "hang",
    "within": 20,
    "findings": [{
        "class": "p2p-unmatched", "step": 3, "call": 12, "comm_ranks": [0, 1], "suspects": [0],
        "says": [r"receive 12 of world from rank 0", r"rank 0 has not made the send", r"call 3 of world",
                 r"earlier rounds rank 0 made this send"],
        "says_stacks": [r"w03_receive_without_send\.py:\d+ second_stage"],
        "fix": [r"micro-batches"],
    }],
}


def first_stage(r, c, micro_batches):
    for _ in range(micro_batches):
        c.send(200_000, 1)


def second_stage(r, c, micro_batches):
    for _ in range(micro_batches):
        c.recv(200_000, 0)


def main(r):
    c0 = r.world()
    for n in r.steps(3):
        if n == 3:
            r.fault()
        if r.rank == 0:
            first_stage(r, c0, 3 if n == 3 else 4)
        else:
            second_stage(r, c0, 4)
        c0.all_reduce(1)


if __name__ == "__main__":
    run(main)
