"""Ranks that end in real jobs: the first words are about the one that ended first, the verdicts are right."""
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from jobs import BUILD, HERE, RANKS, SLACK, Job

PROGRAM = os.path.join(HERE, "programs", "ends.py")
PORT = "28%03d" % (os.getpid() % 1000)
LAUNCHERS = {
    "deepspeed": lambda how: ["deepspeed", "--master_port", PORT, "--num_gpus", str(RANKS), PROGRAM, how],
    "torchrun": lambda how: ["torchrun", "--master_port", PORT, "--nproc_per_node", str(RANKS), PROGRAM, how],
}


def finding(job, kind):
    report = job.report()
    return next((f for f in report["findings"] if f["class"] == kind), None) if report else None


@pytest.fixture(params=LAUNCHERS)
def launch(request):
    return LAUNCHERS[request.param]


def ended(tmp_path, launch, how):
    """Runs until the launcher has given up; the job's last report and its log."""
    job = Job(launch(how), tmp_path, DSHANG_STALL_AFTER="10")
    with job:
        assert job.end() != 0
        time.sleep(2.5)                                            # the monitor finishes its files within 2 s
        return job.report(), job.log(), job


def test_a_rank_that_raises(tmp_path, launch):
    report, log, _ = ended(tmp_path, launch, "raise")
    first = report["findings"][0]
    assert (first["class"], first["suspects"]) == ("rank-dead", [1]), report["findings"]
    assert report["verdict"] in ("hang", "error")
    text = first["summary"] + "\n".join(first["evidence"])
    assert "status 1" in text and "ValueError: sample without labels" in text and "read_labels" in text, text
    assert "dshang: " in log and "rank 1 ended with exit status 1" in log


def test_a_killed_rank_is_found_at_once(tmp_path, launch):
    with Job(launch("kill"), tmp_path, DSHANG_STALL_AFTER="10") as job:
        job.wait_for("the end of rank 1", 200, lambda: "ends now" in job.log())
        begin = time.monotonic()
        first = job.wait_for("finding", 20, lambda: finding(job, "rank-dead"))
        assert time.monotonic() - begin < 1 + SLACK
        assert first["suspects"] == [1] and re.search("SIGKILL|signal 9", first["summary"]), first
        assert job.report()["verdict"] in ("hang", "error")


def test_out_of_memory_on_one_rank(tmp_path, launch):
    report, _, _ = ended(tmp_path, launch, "oom")
    classes = [f["class"] for f in report["findings"]]
    assert classes[0] == "alloc-failed" and report["verdict"] in ("hang", "error"), classes
    cause = report["findings"][0]
    assert cause["suspects"] == [1] and "200 GiB" in cause["summary"], cause
    dead = next(f for f in report["findings"] if f["class"] == "rank-dead")
    assert dead["suspects"] == [1] and dead["consequence_of"] == 0, dead


def test_ctrl_c_is_no_fault(tmp_path, launch):
    with Job(launch("on"), tmp_path, DSHANG_STALL_AFTER="10") as job:
        job.wait_for("three steps", 200, lambda: job.log().count("step 3 done") == RANKS)
        os.killpg(job.process.pid, signal.SIGINT)
        job.process.wait(timeout=60)
        time.sleep(2.5)
        report = job.report()
        assert report["verdict"] == "healthy", report["findings"]
        assert [f["class"] for f in report["findings"]] in ([], ["interrupted"]), report["findings"]


def test_the_log_is_closed_when_the_last_rank_is_gone(tmp_path):
    """`... 2>&1 | tee log` returns at once: nobody keeps the pipe open."""
    job = [os.path.join(BUILD, "dshang"), "dry-run", "-n", str(RANKS), "--", sys.executable, "-c",
           "import torch; torch.cuda.init(); torch.zeros(1, device='cuda'); print('made', flush=True)"]
    begin = time.monotonic()
    done = subprocess.run(job, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100,
                          env=dict(os.environ, DSHANG_DIR=str(tmp_path / "dshang")))
    assert done.stdout.count(b"made") == RANKS, done.stdout
    assert time.monotonic() - begin < 90
