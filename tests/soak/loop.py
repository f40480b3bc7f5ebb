"""A synthetic loop: SOAK_STEPS steps with a phase, a module and three collectives each, and a pause.

Every hundredth of the way it notes the step, the monotonic time and its resident memory (KiB), a line each.
"""
import os
import time

from rankscript import run

STEPS, PAUSE = int(os.environ["SOAK_STEPS"]), float(os.environ["SOAK_PAUSE"])


def resident():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def main(r):
    world = r.world()
    with open(r.path(f"notes.{r.rank}"), "w", buffering=1) as notes:
        for step in r.steps(STEPS, first=0):
            if step % max(STEPS // 100, 1) == 0:
                print(step, time.monotonic(), resident(), file=notes)
            with r.phase("forward"), r.module("layer"):
                world.all_gather(1024)
            with r.phase("backward"):
                world.reduce_scatter(1024)
            world.all_reduce(1)
            r.compute(PAUSE)
        r.sync()
        print(STEPS, time.monotonic(), resident(), file=notes)


if __name__ == "__main__":
    run(main)
