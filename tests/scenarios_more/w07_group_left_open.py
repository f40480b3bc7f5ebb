"""W07 - an exception leaves a group open, and the program goes on: what it calls is never issued."""
from rankscript import run

RANKS = 3
BLOCKS = {0, 1, 2}
MODES = ("blocking",)

EXPECT = {
    "verdict": "hang",
    "within": 20,
    "findings": [{"class": "group-unclosed", "suspects": [1], "waiting": [0, 2],
                  "says": [r"ncclGroupStart", r"all_reduce"], "says_stacks": [r"w07_group_left_open\.py:\d+ reduce_buckets"],
                  "fix": [r"try/finally"]}],
    "early_ok": True,
}


def reduce_buckets(r, c, broken):
    with r.group():
        c.all_reduce(1000)
        if broken:
            raise ValueError("bucket of another type")
        c.all_reduce(2000)


def main(r):
    c0 = r.world()
    for n in r.steps(6):
        if n == 3:
            r.fault()
        try:
            reduce_buckets(r, c0, n == 3 and r.rank == 1)
        except ValueError:
            pass
        if n == 3 and r.rank == 1:
            r.compute(60)
    r.sync()


if __name__ == "__main__":
    run(main)
