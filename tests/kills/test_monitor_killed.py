"""The monitor is killed again and again, at random moments: the job's result is unchanged."""
import contextlib
import os
import random
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "monitor"))

from monitors import monitors_into  # noqa: E402

ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
BUILD = os.path.abspath(os.environ.get("TEST_BUILD", os.path.join(ROOT, "build")))
SCENARIOS = os.path.join(ROOT, "tests", "scenarios")
JOBS, MOMENTS = 30, 50    # as many jobs as it takes: a rank that had to start it often gives up, with one line


def start(folder, seed):
    env = {key: value for key, value in os.environ.items() if not key.startswith(("DSHANG_", "SCENARIO_", "LD_PRELOAD"))}
    env.update(LD_PRELOAD=f"{BUILD}/libdshang.so {BUILD}/libsimcuda.so", PYTHONPATH=SCENARIOS, SCENARIO_DIR=str(folder),
               SCENARIO_MARKERS="1", WORLD_SIZE="4", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(22000 + seed + os.getpid() % 20000),
               DSHANG_DIR=str(folder / "dshang"))
    log = open(folder / "log", "wb")
    return [subprocess.Popen([sys.executable, os.path.join(SCENARIOS, "n10_memory_nearly_full_but_flat.py")], stdin=subprocess.DEVNULL,
                             env=dict(env, RANK=str(r), LOCAL_RANK=str(r)), stdout=log, stderr=log) for r in range(4)]


def test_the_jobs_go_on(tmp_path):
    choice, killed = random.Random(1), 0
    for number in range(JOBS):
        folder = tmp_path / str(number)
        folder.mkdir()
        ranks = start(folder, number)
        while any(rank.poll() is None for rank in ranks):
            time.sleep(choice.uniform(0.02, 0.3))
            for pid in monitors_into(folder / "dshang"):
                with contextlib.suppress(ProcessLookupError):      # it may have ended by itself since
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
        log = (folder / "log").read_text(errors="replace")
        assert [rank.wait() for rank in ranks] == [0, 0, 0, 0], log
        assert len(log.splitlines()) < 40 and "HANG" not in log and "ERROR" not in log, log
        if killed >= MOMENTS:
            return
    raise AssertionError(f"only {killed} monitors could be killed in {JOBS} jobs")
