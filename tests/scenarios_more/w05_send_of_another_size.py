"""W05 - the last micro-batch is smaller on the sending side: the receive has another size.  Proven at once."""
from rankscript import run

RANKS = 2
BLOCKS = {0, 1}
MODES = ("blocking",)

EXPECT = {
    "verdict": "hang",
    "within": 4,
    "findings": [{"class": "argument-mismatch", "certainty": "proven", "waiting": [0, 1], "step": 3, "call": 3, "comm_ranks": [0, 1],
                  "sides": [{"ranks": [0], "op": "send", "count": 150_000}, {"ranks": [1], "op": "recv", "count": 200_000}],
                  "fix": [r"same shape"]}],
}


def main(r):
    c0 = r.world()
    for n in r.steps(3):
        if n == 3:
            r.fault()
        if r.rank == 0:
            c0.send(150_000 if n == 3 else 200_000, 1)
        else:
            c0.recv(200_000, 0)


if __name__ == "__main__":
    run(main)
