"""Which ranks do not take part is said on rank 0's node."""
import os
import subprocess
import sys
import time

import pytest

from fakejob import BUILD, PATIENCE, Job, wait_for

SIMULATED = os.path.abspath(os.path.join(BUILD, "libsimcuda.so"))
LIBRARY = os.path.abspath(os.path.join(BUILD, "libdshang.so"))


@pytest.fixture
def job(tmp_path):
    with Job(tmp_path, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(20000 + os.getpid() % 10000)) as one:
        yield one


def other_process(job, preload, **variables):
    """Waits in `sleep`, as far as /proc shows a rank of the job."""
    env = dict(job.env, RANK="1", WORLD_SIZE="2", LD_PRELOAD=preload, **variables)
    return subprocess.Popen(["sleep", str(PATIENCE)], env=env)


def ends(process):
    process.kill()
    process.wait()


def test_a_rank_that_works_without_the_library_is_named(job):
    assert job.start_monitor().returncode == 0
    process = other_process(job, SIMULATED)
    try:
        job.rank(0, 2)
        wait_for(lambda: "did not load" in job.said())
    finally:
        ends(process)
    assert f"dshang: rank 1 did not load libdshang.so (process {process.pid}: LD_PRELOAD={SIMULATED})" in job.said()
    assert job.said().count("did not load") == 1


@pytest.mark.parametrize("preload, variables", [
    (f"{LIBRARY} {SIMULATED}", {}),       # it may be about to wake
    ("", {}),                             # a wrapper, that may set LD_PRELOAD for the rank
    (SIMULATED, {"MASTER_PORT": "1"}),    # of another job
], ids=["loaded", "wrapper", "other job"])
def test_a_rank_that_may_still_wake_is_not_named(job, preload, variables):
    assert job.start_monitor().returncode == 0
    process = other_process(job, preload, **variables)
    try:
        job.rank(0, 2)
        wait_for(lambda: "watching 1 rank of 2" in job.said())
        time.sleep(2)   # the first look is when that is said
    finally:
        ends(process)
    assert "did not load" not in job.said() and "not heard from" not in job.said()


def test_another_node_writes_down_its_ranks(job):
    job.env["GROUP_RANK"] = "1"
    assert job.start_monitor().returncode == 0
    job.rank(1, 2).do("comm")
    path = job.dir / "node-1" / "attempt-1" / "flight" / "ranks"
    wait_for(path.exists)
    assert path.read_text() == "1\n"
