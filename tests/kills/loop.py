"""Ranks that make LOOP_STEPS steps of about 20 ms and note when each began in a file that outlives them.

The times are those of the system's monotonic clock, one 8-byte float a step, written through a mapping: a process that is
killed has noted all that it began.
"""
import mmap
import os
import struct
import time

from rankscript import run

STEPS = int(os.environ["LOOP_STEPS"])


def main(r):
    with open(r.path(f"steps.{r.rank}"), "w+b") as file:
        file.truncate(8 * (STEPS + 1))
        noted = mmap.mmap(file.fileno(), 0)
    world = r.world()
    for step in r.steps(STEPS):
        noted[8 * step:8 * step + 8] = struct.pack("d", time.monotonic())
        with r.phase("forward"):
            world.all_gather(1024)
        with r.phase("backward"):
            world.reduce_scatter(1024)
        r.compute(0.02)
    with open(r.path(f"result.{r.rank}"), "w") as file:
        file.write(f"{STEPS} steps")


if __name__ == "__main__":
    run(main)
