"""W02 - one of four ranks takes two communicators in another order.  Three against one: that one is suspected."""
from rankscript import run

RANKS = 4
BLOCKS = {0, 1, 2, 3}
MODES = ("blocking",)

EXPECT = {
    "verdict": "hang",
    "within": 20,
    "findings": [{"class": "comm-order-cycle", "suspects": [2], "waiting": [0, 1, 3], "step": 4, "call": 4,
                  "says": [r"rank 2"], "fix": [r"same order"]}],
}


def main(r):
    a, b = r.comm("A", range(4)), r.comm("B", range(4))
    for n in r.steps(4):
        if n == 4:
            r.fault()
        for c in (b, a) if n == 4 and r.rank == 2 else (a, b):
            c.all_reduce(500)


if __name__ == "__main__":
    run(main)
