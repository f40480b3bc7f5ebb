"""The monitor from outside: which ranks it hears, how they end, and attempts."""
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from fakejob import Job, deaths, lines, monitors_of, report, wait_for


# ---- attaching --------------------------------------------------------------------------------------------------

def test_it_says_once_what_it_watches_and_where_the_files_are(job):
    job.start(3)
    time.sleep(0.5)
    assert re.findall(r"^dshang: watching 3 ranks .*, files in (.*)$", job.said(), re.M) == [str(job.dir)]


def test_a_rank_of_another_job_is_refused(job):
    job.start(1)
    code = f"""
import socket, struct
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(b"\\0dshang-{os.getuid()}-{job.number:016x}")
head = struct.pack("=IIQ480s", 1, 1, 0, b"")
s.send(head + struct.pack("=iiiiQQII", 1, 0, 1, 0, {job.number} ^ 1, 4096, 1, 0))
kind, version, number, text = struct.unpack("=IIQ480s", s.recv(1024))
assert kind == 3 and b"another job" in text, (kind, text)
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(b"\\0dshang-{os.getuid()}-{job.number:016x}")
s.send(b"nonsense")
assert struct.unpack("=IIQ480s", s.recv(1024))[0] == 3
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=20)
    assert monitors_of(job.number)


def test_another_user_is_not_heard(job):
    job.start(1)
    code = f"""
import os, socket
os.setuid(65534)
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(b"\\0dshang-{0}-{job.number:016x}")
s.settimeout(10)
try:
    s.send(b"hello")
    assert s.recv(1024) == b""
except (ConnectionResetError, BrokenPipeError):
    pass
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=20)


def test_memory_that_is_no_flight_memory_is_refused_and_does_no_harm(job):
    job.start(1)
    code = f"""
import array, os, socket, struct
fd = os.memfd_create("x", os.MFD_ALLOW_SEALING)
os.truncate(fd, 8192)
import fcntl
fcntl.fcntl(fd, 1033, 2)
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(b"\\0dshang-{os.getuid()}-{job.number:016x}")
hello = struct.pack("=IIQ480s", 1, 1, 0, b"") + struct.pack("=iiiiQQII", 1, 7, 1, 0, {job.number}, 8192, 1, 1 | 4)
s.sendmsg([hello], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd, 2]))])
kind, version, number, text = struct.unpack("=IIQ480s", s.recv(1024))
assert kind == 3 and number == 0 and b"cannot be read" in text, (kind, text)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=20, stderr=job.stderr)
    assert monitors_of(job.number)
    assert "rank 7" not in job.said()       # the rank says it, once


def test_a_rank_may_register_again(job):
    rank, = job.start(1)
    rank.do("reconnect")
    rank.hear("^welcome")
    rank.do("call all_reduce 8")
    rank.end()
    job.ended()
    assert [path.name for path in job.dir.glob("attempt-*")] == ["attempt-1"]
    assert len(lines(job, "attach")) == 1
    assert report(job)["verdict"] == "healthy"


def test_without_a_pidfd_a_death_is_seen_all_the_same(job):
    ranks = job.start(2, pidfd=0)
    ranks[1].process.kill()
    wait_for(lambda: lines(job, "death"))


# ---- deaths -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("command, reap, expected", [
    ("record 3", True, {"code": 3, "by_signal": False}),
    ("exit 3", False, {"code": 3, "by_signal": False}),
    ("exit 3", True, {"code": 3, "by_signal": False}),
    ("signal 9", False, {"code": 9, "by_signal": True}),
    ("signal 11", True, {"code": 11, "by_signal": True}),
])
def test_how_a_rank_ended_is_in_the_journal(job, command, reap, expected):
    ranks = job.start(2)
    ranks[1].do(command, answer=False)
    if reap:
        ranks[1].process.wait(60)
    wait_for(lambda: lines(job, "death"))
    death = lines(job, "death")[0]
    assert {key: death[key] for key in expected} == expected
    assert death["pid"] == ranks[1].pid and death["known"] == ("record" if "record" in command else "status")


def test_a_rank_that_is_killed_while_the_others_wait_is_reported_at_once(tmp_path):
    with Job(tmp_path, DSHANG_STALL_AFTER="2") as job:
        ranks = job.start(2)
        for _ in range(3):
            for rank in ranks:
                rank.do("call all_reduce 8")
        ranks[0].do("wait all_reduce 8")
        ranks[1].process.kill()
        begin = time.monotonic()
        found = wait_for(lambda: (job.dir / "report.json").exists() and report(job))
        assert time.monotonic() - begin < 4
        assert deaths(found) == {1}
        assert "rank 1" in job.said()
        assert re.search(r"\brank 1\b", (job.dir / "report.txt").read_text())


# ---- attempts ---------------------------------------------------------------------------------------------------

def test_a_restart_of_the_launcher_begins_an_attempt(job):
    first = job.start(2)
    again = [job.rank(r, 2, restart=1) for r in range(2)]
    for rank in first:
        rank.kill()
    for rank in again:
        rank.do("comm")
    for rank in again:
        rank.end()
    job.ended()
    assert sorted(path.name for path in job.dir.glob("attempt-*")) == ["attempt-1", "attempt-2"]
    assert os.readlink(job.dir / "report.json") == "attempt-2/report.json"
    assert os.readlink(job.dir / "flight") == "attempt-2/flight"
    assert len(list((job.dir / "attempt-1" / "flight").glob("*.flight"))) == 2
    assert len(list((job.dir / "attempt-2" / "flight").glob("*.flight"))) == 2


def test_a_rank_whose_process_was_dead_begins_an_attempt(job):
    first = job.start(2)
    first[0].kill()
    again = job.rank(0, 2)
    again.do("comm")
    first[1].kill()
    again.end()
    job.ended()
    assert sorted(path.name for path in job.dir.glob("attempt-*")) == ["attempt-1", "attempt-2"]


def test_a_job_that_starts_again_later_gets_the_next_number(job):
    for rank in job.start(1):
        rank.end()
    job.ended()
    job.stderr.truncate(0)
    for rank in job.start(1):
        rank.end()
    job.ended()
    assert sorted(path.name for path in job.dir.glob("attempt-*")) == ["attempt-1", "attempt-2"]
    assert (job.dir / "attempt-1" / "report.json").exists()


def test_a_helper_that_never_becomes_a_rank_begins_no_attempt(job):
    ranks = job.start(1)
    helper = job.rank(0, 1)              # inherits RANK, makes no communicator
    helper.end()
    ranks[0].do("call all_reduce 8")
    other = job.rank(0, 1)
    other.end()
    ranks[0].end()
    job.ended()
    assert [path.name for path in job.dir.glob("attempt-*")] == ["attempt-1"]
    assert report(job)["verdict"] == "healthy"


def test_two_jobs_on_a_node_have_two_monitors(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with Job(tmp_path / "a") as a, Job(tmp_path / "b") as b:
        a.start(2)
        b.start(1)
        assert len(monitors_of(a.number)) == len(monitors_of(b.number)) == 1
        for rank in b.ranks:
            rank.end()
        b.ended()
        assert monitors_of(a.number)
        for rank in a.ranks:
            rank.end()
        a.ended()
        assert report(a)["job"]["world_size"] == 2 and report(b)["job"]["world_size"] == 1


def test_a_monitor_that_is_killed_is_followed_by_one_that_goes_on(tmp_path):
    with Job(tmp_path, DSHANG_STALL_AFTER="600") as job:
        ranks = job.start(3)
        for rank in ranks:
            rank.do("call all_reduce 8")
        ranks[0].do("wait all_reduce 8")
        ranks[2].process.kill()
        wait_for(lambda: (job.dir / "report.json").exists() and 2 in deaths(report(job)))
        wait_for(lambda: lines(job, "time"))
        os.kill(monitors_of(job.number)[0], signal.SIGKILL)
        ranks[0].hear("^closed")
        said = job.said()
        assert job.start_monitor().returncode == 0
        for rank in ranks[:2]:
            rank.do("reconnect")
            rank.hear("^welcome")
        wait_for(lambda: "the monitor was started again" in job.said())
        ranks[1].end()
        ranks[0].kill()
        job.ended()
        assert [path.name for path in job.dir.glob("attempt-*")] == ["attempt-1"]
        assert 2 in deaths(report(job))
        assert len(list(job.dir.glob("flight/*.flight"))) == 3
        assert len(lines(job, "attach")) == 3
        assert os.listdir(job.tmp) == []
        assert said.splitlines()[1] not in job.said()[len(said):]    # what was told is not told again
