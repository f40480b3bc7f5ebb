"""W11 - all ranks wait for a server that never answers, between two steps.  No call is outstanding."""
import os

from rankscript import run

RANKS = 3
BLOCKS = {0, 1, 2}

EXPECT = {
    "verdict": "warning",
    "within": 20,
    "findings": [{"class": "no-collective-outstanding", "suspects": [], "waiting": [0, 1, 2], "severity": "warning",
                  "says": [r"not a communication hang"], "says_stacks": [r"ask_reward_server"],
                  "fix": [r"server"]}],
}


def ask_reward_server(r):
    reader, _writer = os.pipe()
    os.read(reader, 1)


def main(r):
    c0 = r.world()
    for n in r.steps(4):
        c0.all_reduce(1000)
        if n == 3:
            r.sync()
            r.fault()
            ask_reward_server(r)


if __name__ == "__main__":
    run(main)
