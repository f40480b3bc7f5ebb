"""The monitor from outside: its start, its end, and its settings."""
import os
import re
import signal
import socket
import subprocess
import time

import pytest

from fakejob import DSHANG, Job, deaths, lines, monitors_of, report, wait_for


# ---- its life ---------------------------------------------------------------------------------------------------

def test_a_second_monitor_leaves_the_job_to_the_first(job):
    job.start(1)
    first = monitors_of(job.number)
    assert len(first) == 1
    assert job.start_monitor().returncode == 0
    assert monitors_of(job.number) == first
    assert len(job.said().splitlines()) == 1


def test_it_is_nobodys_child(job):
    job.start(1)
    pid = monitors_of(job.number)[0]
    with open(f"/proc/{pid}/stat") as file:
        text = file.read()
    parent, group, session = (int(word) for word in text.rsplit(")", 1)[1].split()[1:4])
    assert parent not in (os.getpid(), job.ranks[0].pid)
    assert session not in (os.getsid(0), 0) and group != os.getpgid(0)
    assert "(dshang-monitor)" in text


def test_it_holds_no_descriptor_of_the_one_who_started_it(tmp_path):
    with Job(tmp_path) as job:
        held, other = os.pipe()
        assert job.start_monitor(pass_fds=[other]).returncode == 0
        job.rank(0, 1).do("comm")
        os.close(other)
        assert os.read(held, 1) == b""
        os.close(held)
        pid = monitors_of(job.number)[0]
        assert all(os.readlink(f"/proc/{pid}/fd/{fd}") == "/dev/null" for fd in range(3))


def test_more_communicators_than_are_recorded_are_told_once(job):
    ranks = job.start(2)
    for rank in ranks:
        rank.do("comms 4000")
    time.sleep(0.5)
    assert "has created" not in job.said()
    for rank in reversed(ranks):
        rank.do("comms 200")
    wait_for(lambda: "has created" in job.said())
    time.sleep(0.5)
    said, = [line for line in job.said().splitlines() if "has created" in line]
    assert re.fullmatch("dshang: rank [01] has created more than 4096 communicators; "
                        "hangs in the later ones are not found", said)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_of_a_launcher_do_not_end_it(job, number):
    rank, = job.start(1)
    pid = monitors_of(job.number)[0]
    os.kill(pid, number)
    rank.do("call all_reduce 8")
    time.sleep(0.3)
    assert monitors_of(job.number) == [pid]
    rank.end()
    job.ended()
    assert report(job)["verdict"] == "healthy"


def test_it_ends_when_no_rank_comes(job):
    begin = time.monotonic()
    assert job.start_monitor().returncode == 0
    job.ended()
    assert 9 < time.monotonic() - begin < 14
    assert not job.dir.exists()


def test_it_ends_after_the_last_rank_and_leaves_a_report(job):
    ranks = job.start(2)
    for rank in ranks:
        assert rank.end() == 0
    begin = time.monotonic()
    job.ended()
    assert time.monotonic() - begin < 3
    assert report(job)["verdict"] == "healthy"
    assert report(job)["job"]["world_size"] == 2


def socket_pair():
    return [end.detach() for end in socket.socketpair()]


@pytest.mark.parametrize("stream", [os.pipe, socket_pair])
def test_the_jobs_output_ends_with_the_last_rank(tmp_path, stream):
    """`... 2>&1 | tee log` returns at once; the output of a service is a socket."""
    with Job(tmp_path) as job:
        assert job.start_monitor().returncode == 0
        reader, writer = stream()
        ranks = [job.rank(r, 2, stderr=writer) for r in range(2)]
        os.close(writer)
        for rank in ranks:
            rank.do("comm")
        with os.fdopen(reader, "rb") as output:
            assert b"watching 2 ranks" in output.readline()
            for rank in ranks:
                rank.end()
            begin = time.monotonic()
            output.read()
            assert time.monotonic() - begin < 1


@pytest.mark.parametrize("closed", ["0<&-", "2>&-", "1>&- 2>&-", "0<&- 1>&- 2>&-"])
def test_standard_streams_that_were_closed_are_no_hindrance(tmp_path, closed):
    with Job(tmp_path) as job:
        command = f'exec "$0" monitor --job {job.number:x} {closed}'
        assert subprocess.run(["sh", "-c", command, DSHANG], env=job.env, timeout=60).returncode == 0
        rank = job.rank(0, 1)
        rank.do("comm")
        rank.do("call all_reduce 8")
        pid, = monitors_of(job.number)
        assert all(os.readlink(f"/proc/{pid}/fd/{fd}") == "/dev/null" for fd in range(3))
        rank.end()
        job.ended()
        assert report(job)["verdict"] == "healthy"


@pytest.mark.parametrize("name, value", [("DSHANG_DIR", b"%s/x\xff"), ("DSHANG_SITE_SKIP", b"\xff\xfe")])
def test_settings_that_are_no_utf_8_are_no_hindrance(tmp_path, name, value):
    with Job(tmp_path) as job:
        value = value.replace(b"%s", os.fsencode(tmp_path))
        job.env[name] = os.fsdecode(value)
        if name == "DSHANG_DIR":
            job.dir = type(tmp_path)(os.fsdecode(value))
        assert job.start_monitor().returncode == 0
        ranks = [job.rank(r, 2) for r in range(2)]
        for rank in ranks:
            rank.do("comm")
            rank.do("call all_reduce 8")
        ranks[0].do("wait all_reduce 8")
        pid, = monitors_of(job.number)
        ranks[1].process.kill()
        wait_for(lambda: (job.dir / "report.json").exists() and deaths(report(job)) == {1})
        assert monitors_of(job.number) == [pid]
        ranks[0].kill()
        job.ended()
        assert lines(job, "end")
        told = subprocess.run([DSHANG, "report", job.dir], capture_output=True, timeout=20)
        assert told.returncode == 0 and told.stdout == (job.dir / "report.txt").read_bytes(), told.stderr


def test_a_process_without_a_rank_is_told_as_one(job):
    assert job.start_monitor().returncode == 0
    job.rank(-1, 1)
    wait_for(lambda: "watching" in job.said())
    assert "watching 1 process without RANK on " in job.said()


# ---- what it asks and samples -----------------------------------------------------------------------------------

def test_stuck_ranks_are_asked_for_their_stacks(tmp_path):
    with Job(tmp_path, DSHANG_STALL_AFTER="1") as job:
        ranks = job.start(2)
        ranks[0].do("wait all_reduce 8")
        ranks[1].hear("^stacks [0-9]+")


def test_cpu_time_and_state_are_in_the_journal(tmp_path):
    with Job(tmp_path, DSHANG_STALL_AFTER="4") as job:
        ranks = job.start(2)
        ranks[0].do("wait all_reduce 8")
        ranks[1].do("burn 60000", answer=False)

        def cpu_times(rank):
            return [line["cpu"] for line in lines(job, "sample") if line["pid"] == rank.pid]
        wait_for(lambda: cpu_times(ranks[1]) and cpu_times(ranks[1])[-1] > cpu_times(ranks[1])[0] + 1)
        assert cpu_times(ranks[1]) == sorted(cpu_times(ranks[1]))
        assert cpu_times(ranks[0])[-1] < cpu_times(ranks[0])[0] + 0.5
        assert {line["state"] for line in lines(job, "sample") if line["pid"] == ranks[0].pid} <= {"S", "R"}


def test_the_report_can_be_repeated_from_the_files(tmp_path):
    with Job(tmp_path, DSHANG_STALL_AFTER="2") as job:
        ranks = job.start(2)
        for rank in ranks:
            rank.do("call all_reduce 8")
        ranks[0].do("wait all_reduce 8")
        ranks[1].process.kill()
        wait_for(lambda: (job.dir / "report.json").exists())
        ranks[0].kill()
        job.ended()
        for option, name in ((["--json"], "report.json"), ([], "report.txt")):
            told = subprocess.run([DSHANG, "report", *option, job.dir], capture_output=True, text=True, timeout=20)
            assert told.stdout == (job.dir / name).read_text(), told.stderr


# ---- settings ---------------------------------------------------------------------------------------------------

def test_a_misspelt_variable_is_told_with_the_nearest_name(tmp_path):
    with Job(tmp_path, DSHANG_PERSISST="3") as job:
        job.start(1)
        assert re.search(r"DSHANG_PERSISST .*DSHANG_PERSIST\b", job.said())


def test_a_bad_value_is_told_with_its_range(tmp_path):
    with Job(tmp_path, DSHANG_POLL="fast") as job:
        job.start(1)
        assert re.search(r"DSHANG_POLL=fast .*0\.005\.\.5.*0\.05", job.said())
