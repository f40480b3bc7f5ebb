"""How soon a mistake is told: from the second rank's call that does not fit (the death of a rank) to the finding's line.

    latency.py BUILD [--runs N] [--detail N] [--faults NAME,...]

Two real torch processes on simulated GPUs; every run is a job of its own.  Beside it TORCH_DISTRIBUTED_DEBUG=DETAIL on the
same mistakes: the time until a rank raises, or that none does within DETAIL_PATIENCE.
"""
import argparse
import json
import os
import random
import re
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FAULTS = {"size": "another tensor size", "collective": "another collective", "root": "another root",
          "reduce op": "another reduce op", "opposite order": "two communicators in opposite order",
          "skipped block": "a ZeRO-3 block skipped (DeepSpeed)", "killed": "a rank killed (SIGKILL)"}
PATIENCE, DETAIL_PATIENCE, START_PATIENCE = 10, 10, 120     # seconds
FINDING = re.compile(rb"^dshang: (?:HANG|ERROR) \[([a-z-]+)\]")


class Ranks:
    """The process that makes ranks, and what they and their monitor say, with the time at which it was read."""

    def __init__(self, build, folder):
        self.folder, self.runs, self.unread = folder, 0, b""
        env = {key: value for key, value in os.environ.items() if not key.startswith(("DSHANG_", "SIMGPU_", "TORCH_"))}
        env.update(LD_PRELOAD=f"{build}/libdshang.so {build}/libsimcuda.so", SIMGPU_DEVICES="2", DS_ACCELERATOR="cuda",
                   PYTHONPATH=f"{build}/simgpu_python", OMP_NUM_THREADS="1", TRITON_LIBCUDA_PATH=build)
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "latency_ranks.py")], env=env, cwd=folder,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.answer("ready")

    def answer(self, wanted):
        """Waits for the answer; reads away what is said meanwhile."""
        got = b""
        while wanted.encode() not in got:
            ready, _, _ = select.select([self.process.stdout, self.process.stderr], [], [], START_PATIENCE)
            if not ready:
                raise SystemExit(f"no answer {wanted}")
            for stream in ready:
                part = os.read(stream.fileno(), 65536)
                if not part:
                    raise SystemExit("the ranks' parent ended: " + self.unread.decode(errors="replace")[-2000:])
                if stream is self.process.stdout:
                    got += part
                else:
                    self.unread = (self.unread + part)[-20000:]

    def tell(self, text, wanted):
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()
        self.answer(wanted)

    def lines(self, patience):
        """(time at which it was read, line) as they come, for so many seconds."""
        end, now = time.monotonic() + patience, time.monotonic_ns()
        while True:
            while b"\n" in self.unread:
                line, self.unread = self.unread.split(b"\n", 1)
                yield now, line
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stderr], [], [], left)[0]:
                return
            part, now = os.read(self.process.stderr.fileno(), 65536), time.monotonic_ns()
            if not part:
                return
            self.unread += part

    def run(self, fault, detail):
        """(seconds or None, what was said) of one job."""
        self.runs += 1
        directory = os.path.join(self.folder, str(self.runs))
        variables = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(20000 + (os.getpid() * 101 + self.runs) % 12000),
                     "DSHANG_DIR": directory}
        if detail:
            variables.update(TORCH_DISTRIBUTED_DEBUG="DETAIL", DSHANG_DISABLE="1")
        self.unread = b""
        self.tell(json.dumps({"fault": fault, "variables": variables, "seed": random.randrange(1 << 30)}), "begun")
        try:
            return self.watch(fault, detail)
        finally:
            self.tell("end", "ended")
            shutil.rmtree(directory, ignore_errors=True)

    def watch(self, fault, detail):
        needed = 1 if fault == "killed" else 2
        called, found, said, begin = {}, None, "", time.monotonic()
        while True:
            all_called = len(called) == needed
            patience = (DETAIL_PATIENCE if detail else PATIENCE) if all_called else START_PATIENCE
            for now, line in self.lines(patience):
                words = line.split(b" ", 3)
                finding = FINDING.match(line)
                if words[0] == b"CALLS":
                    called.setdefault(words[1], int(words[2]))     # of several the first: the one that does not fit
                elif words[0] == b"RAISED" and detail:
                    found, said = found or int(words[2]), said or words[3].decode(errors="replace")
                elif finding and not detail:
                    found, said = found or now, said or finding.group(1).decode()
                if (found and called) or (len(called) == needed and not all_called):
                    break
            else:
                return None, said
            if found and called:
                return (found - max(called.values())) / 1e9, said


def figures(times):
    if not times:
        return "not found"
    return f"median {statistics.median(times):.3f} s, worst {max(times):.3f} s"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--runs", type=int, default=5, help="of each mistake")
    parser.add_argument("--detail", type=int, default=1, help="runs with TORCH_DISTRIBUTED_DEBUG=DETAIL, of each mistake")
    parser.add_argument("--faults", default=",".join(FAULTS))
    arguments = parser.parse_args()
    everything = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        ranks = Ranks(os.path.abspath(arguments.build), folder)
        for fault in arguments.faults.split(","):
            results = [ranks.run(fault, detail=False) for _ in range(arguments.runs)]
            times = [seconds for seconds, _ in results if seconds is not None]
            if fault != "killed":
                everything += times
            classes = ", ".join(sorted({said for _, said in results if said}))
            missed = len(results) - len(times)
            print(f"{FAULTS[fault]}: {figures(times)} (n = {len(results)}{f', {missed} not found' if missed else ''}; {classes})",
                  flush=True)
            detail = [ranks.run(fault, detail=True) for _ in range(arguments.detail)]
            times = [seconds for seconds, _ in detail if seconds is not None]
            said = next((said for _, said in detail if said), f"nothing within {DETAIL_PATIENCE} s: it waits for the time-out")
            if detail:
                print(f"    TORCH_DISTRIBUTED_DEBUG=DETAIL: {figures(times)} (n = {len(detail)}; {said[:100]})", flush=True)
    if everything:
        print(f"all mistakes in calls: {figures(everything)} (n = {len(everything)})")


if __name__ == "__main__":
    main()
