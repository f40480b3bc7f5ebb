"""W17 - on one rank a kernel in front of a call never ends, so that nobody completes it."""
from rankscript import run

RANKS = 3
STALL_AFTER = 4
BLOCKS = {0, 1, 2}
ENV = {"SIMNCCL_FAULT": "1:4:kernel"}

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
        if n == 4:
            r.fault()
        c0.all_reduce(1000)


if __name__ == "__main__":
    run(main)
