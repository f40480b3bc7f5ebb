"""A long run: memory of ranks and monitor, findings, and the rate beside the same job without dshang at the same time.

    soak.py BUILD [--ranks N] [--steps N] [--pause SECONDS]

Two jobs of N ranks run side by side on simulated GPUs, one of them with dshang, so that both meet the same machine.  Exit
status 1 where memory grew, something was found or the job with dshang was more than 1 % slower.
"""
import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "monitor"))

from monitors import monitors_into  # noqa: E402

SCENARIOS = HERE.parent / "scenarios"
WARM = 0.1                                # of the way, after which memory is compared
RANK_GROWTH, MONITOR_GROWTH = 2048, 8192  # KiB from there to the end: what an allocator may keep
SLOWER = 1.01


class Job:
    def __init__(self, build, folder, options, with_dshang):
        self.folder, self.directory, self.monitor = folder, folder / "dshang", []
        folder.mkdir()
        libraries = [f"{build}/libdshang.so"] * with_dshang + [f"{build}/libsimcuda.so"]
        env = {key: value for key, value in os.environ.items() if not key.startswith(("DSHANG_", "SCENARIO_", "LD_PRELOAD"))}
        env.update(LD_PRELOAD=" ".join(libraries), PYTHONPATH=str(SCENARIOS), SCENARIO_DIR=str(folder), SCENARIO_MARKERS="1",
                   SCENARIO_DEADLINE="1e6", WORLD_SIZE=str(options.ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(os.getpid()),
                   SOAK_STEPS=str(options.steps), SOAK_PAUSE=str(options.pause), DSHANG_DIR=str(self.directory))
        with open(folder / "log", "wb") as log:
            self.ranks = [subprocess.Popen([sys.executable, str(HERE / "loop.py")], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                           env=dict(env, RANK=str(r), LOCAL_RANK=str(r))) for r in range(options.ranks)]

    def goes_on(self):
        return any(rank.poll() is None for rank in self.ranks)

    def sample(self):
        """Notes the monitor's resident memory, where there is one."""
        for pid in monitors_into(self.directory):
            with contextlib.suppress(OSError, StopIteration):
                status = pathlib.Path("/proc", str(pid), "status").read_text().splitlines()
                self.monitor.append((time.monotonic(), next(int(l.split()[1]) for l in status if l.startswith("VmRSS"))))

    def notes(self, rank):
        return [(int(step), float(at), int(kib)) for step, at, kib in map(str.split, open(self.folder / f"notes.{rank}"))]

    def seconds(self):
        """From the warm part to the end, of the slowest rank."""
        return max(notes[-1][1] - notes[int(len(notes) * WARM)][1] for notes in map(self.notes, range(len(self.ranks))))

    def growth(self):
        """KiB after the warm part and at the end, of the rank that grew most."""
        pairs = [(notes[int(len(notes) * WARM)][2], notes[-1][2]) for notes in map(self.notes, range(len(self.ranks)))]
        return max(pairs, key=lambda pair: pair[1] - pair[0])

    def monitor_growth(self):
        warm = self.monitor[0][0] + WARM * (self.monitor[-1][0] - self.monitor[0][0])
        return next(kib for at, kib in self.monitor if at >= warm), self.monitor[-1][1], max(kib for _, kib in self.monitor)

    def files(self):
        return sum(file.stat().st_size for file in self.directory.rglob("*") if file.is_file())


def soak(options, folder):
    jobs = [Job(options.build, folder / name, options, name == "dshang") for name in ("bare", "dshang")]
    try:
        while any(job.goes_on() for job in jobs):
            jobs[1].sample()
            time.sleep(1)
    finally:
        for rank in (rank for job in jobs for rank in job.ranks):
            rank.kill()
    for job in jobs:
        if any(rank.wait() for rank in job.ranks):
            sys.exit("soak: a rank failed\n" + (job.folder / "log").read_text(errors="replace")[-2000:])
    time.sleep(2.5)                       # the monitor finishes its files within 2 s
    return jobs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--pause", type=float, default=0.004, help="seconds of each step in which a rank sleeps")
    options = parser.parse_args()
    options.build = options.build.resolve()
    with tempfile.TemporaryDirectory(prefix="soak.") as folder:
        bare, watched = soak(options, pathlib.Path(folder))
        before, after = bare.seconds(), watched.seconds()
        plain, rank = bare.growth(), watched.growth()
        warm, end, most = watched.monitor_growth()
        report = json.loads((watched.directory / "report.json").read_text())
        bad = [name for name, is_bad in (
            ("slower", after > SLOWER * before),
            ("memory of a rank", rank[1] - rank[0] > max(plain[1] - plain[0], 0) + RANK_GROWTH),
            ("memory of the monitor", end - warm > MONITOR_GROWTH),
            ("findings", bool(report["findings"]))) if is_bad]
        print(f"{options.ranks} ranks, {options.steps} steps: {after:.1f} s with dshang, {before:.1f} s without, "
              f"side by side ({(after / before - 1) * 100:+.2f} %, asked: within 1 %)")
        print(f"memory of the rank that grew most: {rank[0]} KiB after {WARM:.0%} of the way, {rank[1]} KiB at the end "
              f"(without dshang {plain[0]}, {plain[1]})")
        print(f"memory of the monitor: {warm} KiB after {WARM:.0%} of the way, {end} KiB at the end, at most {most} KiB")
        print(f"files of the job: {watched.files() / 2**20:.1f} MiB; verdict {report['verdict']}, {len(report['findings'])} findings")
        print("as asked for" if not bad else "BELOW: " + ", ".join(bad))
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
