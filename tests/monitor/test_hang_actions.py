"""What the monitor does at a hang besides reporting it (DSHANG_ON_HANG)."""
import os
import re
import signal
import subprocess
import time

import pytest

from fakejob import DSHANG, Job, report, wait_for

AFTER = 1


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Makes jobs whose directory is the current one."""
    monkeypatch.chdir(tmp_path)

    def make(action, **settings):
        return Job(tmp_path, DSHANG_ON_HANG=action, **{"DSHANG_FAIL_AFTER": str(AFTER), **settings})
    return make


def hang(job, world=2):
    """Rank 0 waits for the last one, which does something else: proven."""
    ranks = job.start(world)
    for rank in ranks:
        rank.do("call all_reduce 8")
    for rank in ranks[:-1]:
        rank.do("wait all_reduce 8")
    ranks[-1].do("wait all_reduce 9")
    wait_for(lambda: "HANG" in job.said() and (job.dir / "report.json").exists())
    return ranks


def death(job):
    ranks = job.start(2)
    for rank in ranks:
        rank.do("call all_reduce 8")
    ranks[0].do("wait all_reduce 8")
    ranks[1].process.kill()
    return ranks


def processes_with(word):
    """Pids whose command line holds `word`."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                if word.encode() in file.read():
                    found.append(int(entry))
        except OSError:
            continue
    return found


# ---- fail ---------------------------------------------------------------------------------------------------

def test_every_rank_is_told_to_fail_with_the_findings_sentence(start):
    with start("fail", DSHANG_FAIL_AFTER="5") as job:
        ranks = hang(job)
        found = time.monotonic()
        told = [rank.hear(r"^fail (\d) (.*)$") for rank in ranks]
        assert time.monotonic() - found > 3
        finding = report(job)["findings"][0]
        for kind, sentence in (match.groups() for match in told):
            assert kind == "0"
            assert sentence == f"dshang [{finding['class']}]: {finding['summary']}"[:479]
        assert re.search(r"^dshang: DSHANG_ON_HANG=fail: ", job.said(), re.M)
        assert all(rank.process.poll() is None for rank in ranks)       # they end by their own error


def test_a_dead_rank_is_told_as_gone(start):
    with start("fail") as job:
        ranks = death(job)
        assert ranks[0].hear(r"^fail (\d) ").group(1) == "1"


def test_a_rank_that_does_not_fail_is_ended(start):
    with start("fail", DSHANG_FAIL_GRACE="1") as job:
        ranks = hang(job)
        for rank in ranks:
            assert rank.process.wait(60) == -signal.SIGTERM
        job.ended()
        assert re.search(r"SIGTERM: rank 0, 1$", job.said(), re.M)
        assert report(job)["findings"][0]["class"] == "argument-mismatch"


def test_a_rank_that_goes_on_is_not_ended(start):
    """A program that takes the error and makes its communicators again."""
    with start("fail", DSHANG_FAIL_GRACE="2") as job:
        ranks = hang(job)
        for rank in ranks:
            rank.hear("^fail ")
            rank.do("comms 1")
        time.sleep(4)
        assert all(rank.process.poll() is None for rank in ranks)
        assert "SIGTERM" not in job.said()


def test_a_disagreement_that_nobody_waits_in_ends_nothing(start):
    """As counts that NCCL does not compare; a call that takes long afterwards is not this one."""
    with start("fail") as job:
        ranks = hang(job)
        for rank in ranks:
            rank.do("finish")
        for rank in ranks:
            rank.do("wait all_gather 3")
        time.sleep(AFTER + 2)
        assert "DSHANG_ON_HANG" not in job.said()


@pytest.mark.parametrize("wanted", [{}, {"DSHANG_FAIL_ON": "judged"}])
def test_a_judged_hang_ends_a_job_only_where_that_is_wanted(start, wanted):
    with start("fail", DSHANG_STALL_AFTER="1", **wanted) as job:
        ranks = job.start(2)
        for rank in ranks:
            rank.do("call all_reduce 8")
        ranks[0].do("wait all_reduce 8")          # nobody knows why rank 1 does not come
        wait_for(lambda: "HANG" in job.said() and (job.dir / "report.json").exists())
        assert report(job)["findings"][0]["certainty"] == "judged"
        if wanted:
            ranks[0].hear("^fail 0 ")
        else:
            time.sleep(AFTER + 2)
            assert "DSHANG_ON_HANG" not in job.said()


def test_the_next_attempt_is_not_told(start):
    with start("fail") as job:
        ranks = hang(job)
        for rank in ranks:
            rank.hear("^fail ")
        ranks[0].do("record 1", answer=False)
        ranks[0].process.wait(60)
        again = [job.rank(0, 2, restart=1)]       # the monitor is the same: rank 1 of the first attempt is still there
        ranks[1].kill()
        again.append(job.rank(1, 2, restart=1))
        for rank in again:
            rank.do("comm")
            rank.do("call all_reduce 8")
        time.sleep(AFTER + 1)
        for rank in again:
            rank.do("call all_reduce 8")
            assert b"fail" not in rank.heard
        for rank in again:
            assert rank.end() == 0
        job.ended()
        assert (job.dir / "attempt-2" / "report.json").exists()
        assert report(job)["verdict"] == "healthy"


# ---- a command ------------------------------------------------------------------------------------------------

def test_a_command_runs_once_and_knows_the_finding(start, tmp_path):
    command = r"""exec:printf '%s|' "$DSHANG_HANG_CLASS" "$DSHANG_HANG_CERTAINTY" "$DSHANG_HANG_SUSPECTS" \
        "$DSHANG_HANG_WAITING" "$DSHANG_HANG_SUMMARY" "$LD_PRELOAD" "$(umask)" >> told; cat; \
        cp $DSHANG_REPORT/report.txt copy; echo said; exit 3"""
    mask = os.umask(0o022)
    os.umask(mask)
    with start(command) as job:
        ranks = hang(job, 3)
        wait_for(lambda: (job.dir / "on_hang.log").exists() and (job.dir / "on_hang.log").read_text() == "said\n")
        time.sleep(2)
        finding = report(job)["findings"][0]
        told = (tmp_path / "told").read_text()
        assert told == f"argument-mismatch|proven|2|0,1|{finding['summary']}||{mask:04o}|"
        assert "rank 2" in (tmp_path / "copy").read_text()
        assert all(rank.process.poll() is None for rank in ranks)
        assert len(re.findall("^dshang: DSHANG_ON_HANG runs ", job.said(), re.M)) == 1


def test_a_command_holds_nothing_of_the_job_up(start):
    """One that runs on when the job is gone keeps neither the monitor nor the job's stderr."""
    word = f"61.{os.getpid()}"
    with start(f"exec:sleep {word}") as job:
        ranks = hang(job)
        pids = wait_for(lambda: [pid for pid in processes_with(f"sleep\0{word}")])
        try:
            for entry in os.listdir(f"/proc/{pids[0]}/fd"):
                assert os.readlink(f"/proc/{pids[0]}/fd/{entry}") in ("/dev/null", str(job.dir / "on_hang.log"))
            for rank in ranks:
                rank.kill()
            job.ended()
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)


def test_a_command_that_takes_too_long_is_ended():
    word = f"67.{os.getpid()}"
    minder = subprocess.run([DSHANG, "mind-command", "1", f"sleep {word}"], stdout=subprocess.PIPE, timeout=60)
    assert b"takes too long" in minder.stdout
    wait_for(lambda: not processes_with(f"sleep\0{word}"))


def test_a_finding_is_no_part_of_the_command(tmp_path, monkeypatch):
    """Its text comes from the job: paths, names; a shell must not read it."""
    odd = tmp_path / "a $(touch told) `touch told`; touch told"
    odd.mkdir()
    monkeypatch.chdir(odd)
    with Job(odd, DSHANG_ON_HANG="exec:true", DSHANG_FAIL_AFTER="0") as job:
        hang(job)
        wait_for(lambda: "DSHANG_ON_HANG runs true" in job.said())
        time.sleep(1)
        assert not (odd / "told").exists()


# ---- values -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name, value", [("ON_HANG", "kill"), ("ON_HANG", "exec:"), ("FAIL_ON", "guessed")])
def test_a_bad_value_is_told_in_one_line(tmp_path, name, value):
    with Job(tmp_path, **{f"DSHANG_{name}": value}) as job:
        job.start(1)
        assert len(re.findall(f"^dshang: DSHANG_{name}={value} is not one of .*; the default .* is used$", job.said(),
                              re.M)) == 1
