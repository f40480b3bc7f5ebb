"""M01 - near misses of the waits: neighbours exchange in groups, communicators in one order, a late split, a late stage.  Healthy."""
from rankscript import run

RANKS = 4
STALL_AFTER = 6
EXPECT = {"verdict": "healthy", "findings": []}


def main(r):
    c0 = r.world()
    left, right = (r.rank - 1) % 4, (r.rank + 1) % 4
    a, b = r.comm("A", range(4)), r.comm("B", range(4))
    for n in r.steps(6):
        with r.group():
            c0.send(200_000, right)
            c0.recv(200_000, left)
        a.all_reduce(100, wait=False)
        b.all_reduce(100, wait=False)
        r.sync()
        if n == 3:
            r.compute(2.5 if r.rank == 1 else 0)       # rank 1 comes late to the split, and to the exchange after it
            pair = c0.split(r.rank // 2, r.rank)
        if n > 3:
            pair.all_reduce(10)
        if n == 5 and r.rank == 3:
            r.compute(2.5)


if __name__ == "__main__":
    run(main)
