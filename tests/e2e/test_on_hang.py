"""DSHANG_ON_HANG=fail in real jobs: they end by their own framework's error path, within seconds."""
import glob
import json
import os
import re
import sys
import time

from jobs import HERE, RANKS, SLACK, Job, deepspeed

PROGRAMS = os.path.join(HERE, "programs")
PORT = "27%03d" % (os.getpid() % 1000)
AFTER = 2           # seconds


def endings(directory):
    """(by a signal, code) of every rank process, as the monitor saw them."""
    with open(os.path.join(directory, "flight", "monitor.log")) as file:
        lines = [json.loads(line) for line in file]
    return [(line["by_signal"], line["code"]) for line in lines if line["news"] == "death"]


def report_of(job, attempt):
    with open(os.path.join(job.directory, f"attempt-{attempt}", "report.json")) as file:
        return json.load(file)


def fail(command, folder, **settings):
    return Job(command, folder, DSHANG_ON_HANG="fail", DSHANG_FAIL_AFTER=str(AFTER), **settings)


def test_deepspeed_ends_by_torchs_own_error(tmp_path):
    with fail(deepspeed("skipped_block", "--mistake"), tmp_path, TORCH_FR_BUFFER_SIZE="2000",
              TORCH_FR_DUMP_TEMP_FILE=str(tmp_path / "recorder_"),
              TORCH_NCCL_DEBUG_INFO_TEMP_FILE=str(tmp_path / "recorder_")) as job:
        job.wait_for("finding", 200, lambda: "dshang: HANG" in job.log())
        found = time.monotonic()
        assert job.end() != 0
        # AFTER, the poll, and four times the 2 s that Flight Recorder gets.
        assert time.monotonic() - found < AFTER + 8 + 5 * SLACK
        time.sleep(2.5)
        finding = job.report()["findings"][0]
        assert (finding["class"], finding["suspects"]) == ("module-skipped", [1]), finding
        sentence = f"dshang [module-skipped]: {finding['summary']}"[:400]
        assert len(re.findall("^Last error:\n" + re.escape(sentence), job.log(), re.M)) >= RANKS, job.log()[-6000:]
        ends = endings(job.directory)
        assert len(ends) == RANKS and all(end != (False, 0) for end in ends), ends
        assert len(glob.glob(str(tmp_path / "recorder_*"))) == RANKS, os.listdir(tmp_path)


def test_torchrun_starts_a_healthy_attempt_again(tmp_path):
    command = ["torchrun", "--master_port", PORT, "--nproc_per_node", str(RANKS), "--max-restarts", "1",
               os.path.join(PROGRAMS, "restarts.py")]
    with fail(command, tmp_path, SCENARIO_DIR=str(tmp_path), TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC="250") as job:
        assert job.end() == 0, job.log()[-6000:]
        time.sleep(2.5)
        through = job.lines(r"^rank \d+ is through in attempt (\d)$")
        assert through == ["1"] * RANKS, job.log()[-6000:]
        assert report_of(job, 1)["verdict"] == "hang" and report_of(job, 2)["verdict"] == "healthy"
        assert not os.path.exists(os.path.join(job.directory, "attempt-3"))
        assert len(job.lines("^dshang: DSHANG_ON_HANG=fail: .*made to fail$")) == 1


def test_a_program_without_torch_is_answered_too(tmp_path):
    with fail([sys.executable, os.path.join(PROGRAMS, "polls.py")], tmp_path, SCENARIO_DIR=str(tmp_path)) as job:
        assert job.end() == 7, job.log()
        told = job.lines(r"^rank \d error (\d): (.*)$")
        assert len(told) == RANKS and {error for error, _ in told} == {"5"}, job.log()
        assert all(text.startswith("dshang [argument-mismatch]: ") for _, text in told), told
