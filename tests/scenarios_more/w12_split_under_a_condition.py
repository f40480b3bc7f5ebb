"""W12 - a communicator is split under a condition: rank 2 does not call it and goes on."""
from rankscript import run

RANKS = 4
BLOCKS = {0, 1, 2, 3}

EXPECT = {
    "verdict": "hang",
    "within": 20,
    "findings": [{"class": "comm-init-stall", "suspects": [2], "waiting": [0, 1, 3], "step": 3,
                  "says": [r"split 1 of world", r"rank 2 has not called it", r"call 3 of world"],
                  "says_stacks": [r"w12_split_under_a_condition\.py:\d+ make_expert_group"],
                  "fix": [r"[Ee]very member of the parent"]}],
}


def make_expert_group(r, c):
    return c.split(r.rank % 2, r.rank)


def main(r):
    c0 = r.world()
    for n in r.steps(3):
        if n == 3:
            r.fault()
            if r.rank != 2:
                make_expert_group(r, c0)
        c0.all_reduce(100)


if __name__ == "__main__":
    run(main)
