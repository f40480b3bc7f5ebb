"""W13 - rank 1 never comes to the first communicator: it waits for a lock file that nobody removes."""
import os

from rankscript import run

RANKS = 3
BLOCKS = {0, 1, 2}

EXPECT = {
    "verdict": "hang",
    "within": 20,
    "findings": [{"class": "comm-init-stall", "suspects": [1], "waiting": [0, 2], "severity": "hang",
                  "says": [r"rank 1 has not called it", r"no progress"], "says_stacks": [r"wait_for_build_lock"]}],
}


def wait_for_build_lock():
    reader, _writer = os.pipe()
    os.read(reader, 1)


def main(r):
    if r.rank == 1:
        r.fault()
        wait_for_build_lock()
    c0 = r.world()
    c0.all_reduce(100)


if __name__ == "__main__":
    run(main)
