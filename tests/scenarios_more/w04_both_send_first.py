"""W04 - two neighbours exchange large messages, and both send before they receive, without a group."""
from rankscript import run

RANKS = 2
BLOCKS = {0, 1}
MODES = ("blocking",)

EXPECT = {
    "verdict": "hang",
    "within": 20,
    "findings": [{"class": "p2p-unmatched", "suspects": [], "waiting": [0, 1], "step": 2, "call": 2,
                  "says": [r"send first"], "fix": [r"batch_isend_irecv"]}],
}


def main(r):
    c0 = r.world()
    peer = 1 - r.rank
    for n in r.steps(2):
        if n == 2:
            r.fault()
            c0.send(200_000, peer)
            c0.recv(200_000, peer)
        else:
            with r.group():
                c0.send(200_000, peer)
                c0.recv(200_000, peer)


if __name__ == "__main__":
    run(main)
