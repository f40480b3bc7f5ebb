"""Ranks and monitor are killed at random moments, alone and together: what is left of the job ends as it would have, no
report is half written, and with all killed at once all but the last DSHANG_PERSIST seconds are there.

KILL_RUNS: how many jobs (default 10; scripts/test --full: 200); KILL_SEED: the choice of victims and moments.
"""
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import sys
import time

import jsonschema
import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "monitor"))

from monitors import monitors_into  # noqa: E402

RANKS, STEPS = 3, 120
BUILD = pathlib.Path(os.environ.get("TEST_BUILD", ROOT / "build")).resolve()
RUNS, SEED = int(os.environ.get("KILL_RUNS", "10")), int(os.environ.get("KILL_SEED", "1"))
SCHEMA = json.loads((ROOT / "docs" / "report.schema.json").read_text())
PERSIST = 0.5       # seconds
COPYING = 0.5       # seconds that a copy may take on a busy machine
KINDS = ["monitor", "a rank", "a rank and the monitor", "all ranks", "everything"]
DURATION = STEPS * 0.022


class Job:
    def __init__(self, folder, port):
        self.folder, self.directory = folder, folder / "dshang"
        env = {key: value for key, value in os.environ.items() if not key.startswith(("DSHANG_", "SCENARIO_", "LD_PRELOAD"))}
        env.update(LOOP_STEPS=str(STEPS), LD_PRELOAD=f"{BUILD}/libdshang.so {BUILD}/libsimcuda.so", PYTHONPATH=str(ROOT / "tests" / "scenarios"),
                   SCENARIO_DIR=str(folder), SCENARIO_MARKERS="1", WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1",
                   MASTER_PORT=str(port), DSHANG_DIR=str(self.directory), DSHANG_PERSIST=str(PERSIST))
        with open(folder / "log", "wb") as log:
            self.ranks = [subprocess.Popen([sys.executable, str(HERE / "loop.py")], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                           env=dict(env, RANK=str(r), LOCAL_RANK=str(r))) for r in range(RANKS)]

    def monitors(self):
        return monitors_into(self.directory)

    def began(self, rank):
        """When each step began, oldest first."""
        with contextlib.suppress(FileNotFoundError):
            times = struct.unpack(f"{STEPS + 1}d", (self.folder / f"steps.{rank}").read_bytes() or bytes(8 * (STEPS + 1)))
            return [at for at in times if at]
        return []

    def was_under_way(self, ranks, moment):
        """Each of them had been heard of and was in the middle of its steps."""
        began = [self.began(rank) for rank in ranks]
        return all(times and times[0] < moment - 1 and len(times) < STEPS and times[-1] > moment - 0.2 for times in began)

    def log(self):
        return (self.folder / "log").read_text(errors="replace")

    def report_is_whole(self):
        """Both files of a report are, or none."""
        with contextlib.suppress(FileNotFoundError):
            jsonschema.validate(json.loads((self.directory / "report.json").read_text()), SCHEMA)
        with contextlib.suppress(FileNotFoundError):
            assert (self.directory / "report.txt").read_text().endswith("\n")

    def end(self):
        for rank in self.ranks:
            rank.kill()
            rank.wait()
        for pid in self.monitors():
            kill(pid)


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def victims(job, kind, choice):
    """Indices of ranks, and whether the monitor dies."""
    ranks = {"a rank": [choice.randrange(RANKS)], "a rank and the monitor": [choice.randrange(RANKS)],
             "all ranks": list(range(RANKS)), "everything": list(range(RANKS))}.get(kind, [])
    return ranks, kind in ("monitor", "a rank and the monitor", "everything")


def wait_while(condition, seconds):
    end = time.monotonic() + seconds
    while condition() and time.monotonic() < end:
        time.sleep(0.02)
        yield


def newest_steps(directory):
    """By rank, from the flight files."""
    dump = subprocess.run([BUILD / "dshang", "report", "--dump", directory], capture_output=True, text=True, errors="replace")
    assert dump.returncode == 0, dump.stderr
    newest, rank = {}, None
    for line in dump.stdout.splitlines():
        if match := re.match(r"rank (\d+) ", line):
            rank = int(match.group(1))
        elif match := re.match(r"visit step (\d+)", line):
            newest[rank] = max(newest.get(rank, 0), int(match.group(1)))
    return newest


def nothing_older_is_lost(job, killed_at):
    """Ranks that had time to hand over, which takes a copy."""
    kept = [rank for rank in range(RANKS)
            if (began := job.began(rank)) and began[0] < killed_at - PERSIST - COPYING]
    if not kept:
        return
    newest = newest_steps(job.directory)
    for rank in kept:
        due = sum(at < killed_at - PERSIST - COPYING for at in job.began(rank))
        assert newest.get(rank, 0) >= due, (rank, newest, due)


def what_was_left_ends_well(job, ranks):
    """`ranks` were killed.  The others wait for them, as they would without dshang, unless all had made their last step."""
    over = all(len(job.began(rank)) == STEPS for rank in ranks)
    if not ranks or over:
        for rank in job.ranks:
            rank.wait(60)
    left = [rank for rank in range(RANKS) if rank not in ranks]
    for rank in left:
        status = job.ranks[rank].poll()
        assert status in ((0,) if not ranks else (0, None)), (rank, status, job.log())
        if status == 0:
            assert (job.folder / f"result.{rank}").read_text() == f"{STEPS} steps"


def the_death_is_told(job, ranks):
    """Of a rank as an error; of all at once as an end from outside."""
    findings = json.loads((job.directory / "report.json").read_text())["findings"]
    expected = ("interrupted", []) if len(ranks) == RANKS else ("rank-dead", ranks)
    assert [(f["class"], f["suspects"]) for f in findings] == [expected], findings


@pytest.mark.parametrize("number", range(RUNS))
def test_killed_at_a_random_moment(tmp_path, number):
    choice = random.Random(f"{SEED} {number}")
    kind = KINDS[number % len(KINDS)]
    job = Job(tmp_path, 23000 + (os.getpid() * 64 + number) % 20000)
    try:
        # From before the first call until after the last one.
        for _ in wait_while(lambda: not job.began(0), 30):
            pass
        moment = time.monotonic() + choice.uniform(-0.3, DURATION)
        for _ in wait_while(lambda: time.monotonic() < moment, DURATION):
            job.report_is_whole()
        ranks, with_monitor = victims(job, kind, choice)
        pids = [job.ranks[rank].pid for rank in ranks] + (job.monitors() if with_monitor else [])
        choice.shuffle(pids)
        killed_at = time.monotonic()
        for pid in pids:
            kill(pid)
        for _ in wait_while(lambda: any(job.ranks[r].poll() is None for r in range(RANKS)), 2.5):
            job.report_is_whole()
        what_was_left_ends_well(job, ranks)
        log = job.log()
        assert len(log.splitlines()) < 60 and "Traceback" not in log, log
        if not ranks:
            assert "HANG" not in log and "ERROR" not in log, log
        elif not with_monitor and job.was_under_way(ranks, killed_at):
            the_death_is_told(job, ranks)
        if all(rank.poll() is not None for rank in job.ranks):
            for _ in wait_while(job.monitors, 10):     # one that was started again may still write
                job.report_is_whole()
        nothing_older_is_lost(job, killed_at)
        job.report_is_whole()
    finally:
        job.end()
