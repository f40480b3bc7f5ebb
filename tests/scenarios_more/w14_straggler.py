"""W14 - rank 2 needs 0.2 s more for every step: late, but advancing.  Worth a line, never a hang."""
from rankscript import run

RANKS = 3
MODES = ("blocking",)

EXPECT = {
    "verdict": "healthy",
    "findings": [{"class": "straggler", "suspects": [2], "severity": "info",
                  "says": [r"late", r"progress"], "fix": [r"uneven|logging"]}],
    "forbid": [r"\bhang\b", r"frozen"],
}


def main(r):
    c0 = r.world()
    for _ in r.steps(60):
        c0.all_gather(1000)
        r.compute(0.25 if r.rank == 2 else 0.05)
        c0.reduce_scatter(1000)


if __name__ == "__main__":
    run(main)
