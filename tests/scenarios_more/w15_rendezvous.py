"""W15 - ranks 0 and 2 wait in torch's rendezvous for rank 1, which waits for a lock file.  There is no communicator yet."""
import os

from rankscript import run

RANKS = 3
BLOCKS = {0, 1, 2}
MODES = ("blocking",)
DEADLINE = 90

EXPECT = {
    "verdict": "hang",
    "within": 40,
    "findings": [{"class": "comm-init-stall", "suspects": [1], "severity": "hang",
                  "says": [r"rendezvous", r"rank 1 has not come", r"wait_for_build_lock"], "fix": [r"MASTER_PORT"]}],
    "forbid": [r"firewall"],
}


def wait_for_build_lock():
    reader, _writer = os.pipe()
    os.read(reader, 1)


def main(r):
    import torch.distributed
    if r.rank == 1:
        r.fault()
        wait_for_build_lock()
    torch.distributed.init_process_group("gloo")


if __name__ == "__main__":
    run(main)
