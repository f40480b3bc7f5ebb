"""W10 - one rank stays in a call that all others have finished: its device or link is frozen."""
from rankscript import run

RANKS = 3
BLOCKS = {0, 1, 2}
ENV = {"SIMNCCL_FAULT": "2:5:stall"}

EXPECT = {
    "verdict": "hang",
    "within": 20,
    "findings": [{"class": "rank-frozen", "suspects": [2], "call": 5,
                  "says": [r"still in call 5 of world", r"finished"], "fix": [r"nvidia-smi"]}],
}


def main(r):
    c0 = r.world()
    for n in r.steps(20):
        if n == 5:
            r.fault()
        c0.all_reduce(1000)


if __name__ == "__main__":
    run(main)
