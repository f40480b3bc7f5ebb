"""W16 - the first checkpoint, saved by one of two ranks after the first step: neither a majority nor a history tells the
ranks apart.  Saving is the odd thing, not the step that the other rank goes on with."""
from rankscript import run

RANKS = 2
BLOCKS = {0, 1}
SIZES = [1000, 2000, 3000]

EXPECT = {
    "verdict": "hang",
    "within": 6,
    "findings": [{"class": "rank-conditional-call", "suspects": ([0], []),
                  "says": [r"rank 0 made collectives for 'save'", r"rank 1 does not make|other ranks do not make"]}],
    "forbid": [r"a step more", r"same number of batches: DistributedSampler"],
}


def train_step(c, r):
    with r.phase("forward"):
        for i, size in enumerate(SIZES):
            with r.module(f"m{i}"):
                c.all_gather(size)
    with r.phase("backward"):
        for i, size in reversed(list(enumerate(SIZES))):
            with r.module(f"m{i}"):
                c.reduce_scatter(size)


def main(r):
    c0 = r.world()
    for n in r.steps(4):
        train_step(c0, r)
        if n == 1 and r.rank == 0:
            r.fault()
            with r.phase("save"):
                c0.broadcast(40)
                c0.all_reduce(1)


if __name__ == "__main__":
    run(main)
