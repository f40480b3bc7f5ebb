"""The monitor from outside: attaching, deaths, attempts, files, and its own end."""
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time

import pytest

from fakejob import DSHANG, FAKE_RANK, Job, monitors_of, wait_for


@pytest.fixture
def job(tmp_path):
    with Job(tmp_path) as one:
        yield one


def report(job):
    return json.loads((job.dir / "report.json").read_text())


def journal(job):
    path = job.dir / "flight" / "monitor.log"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def lines(job, kind):
    return [line for line in journal(job) if line["news"] == kind]


def deaths(report):
    return {rank for finding in report["findings"] if finding["class"] == "rank-dead" for rank in finding["suspects"]}


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


def test_the_jobs_output_ends_with_the_last_rank(tmp_path):
    """`... 2>&1 | tee log` returns at once."""
    with Job(tmp_path) as job:
        assert job.start_monitor().returncode == 0
        reader, writer = os.pipe()
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


def test_memory_that_is_no_flight_memory_is_said_and_does_no_harm(job):
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
    wait_for(lambda: "rank 7 is not watched: the flight memory cannot be read" in job.said())
    assert monitors_of(job.number)


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


# ---- files ------------------------------------------------------------------------------------------------------

def test_files_are_for_their_owner_alone(job):
    for rank in job.start(2):
        rank.end()
    job.ended()
    seen = 0
    for folder, folders, files in os.walk(job.dir):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700, folder
        for name in files:
            path = os.path.join(folder, name)
            assert stat.S_IMODE(os.stat(path).st_mode) == 0o600, path
            seen += 1
    assert seen >= 5
    assert not [name for name in os.listdir(job.dir / "attempt-1") if name.endswith(".new")]


def test_while_the_job_runs_a_copy_is_on_the_node(job):
    rank, = job.start(1)
    rank.do("call all_reduce 8")
    note, = wait_for(lambda: list(job.dir.glob("flight/spool.*")))
    spool = note.read_text().strip()
    assert spool.startswith(str(job.tmp / f"dshang-{os.getuid()}" / f"{job.number:016x}"))
    flight, = wait_for(lambda: [name for name in os.listdir(spool) if name.endswith(".flight")])
    assert "monitor.log" in os.listdir(spool)
    assert stat.S_IMODE(os.stat(spool).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(os.path.join(spool, flight)).st_mode) == 0o600
    rank.end()
    job.ended()
    assert os.listdir(job.tmp) == []
    assert not list(job.dir.glob("flight/spool.*"))


def test_when_monitor_and_rank_die_together_the_copy_tells_the_rest(job):
    rank, = job.start(1)
    for _ in range(5):
        rank.do("call all_reduce 8")
    time.sleep(1)
    os.kill(monitors_of(job.number)[0], signal.SIGKILL)
    rank.kill()
    told = subprocess.run([DSHANG, "report", "--dump", job.dir], capture_output=True, text=True, timeout=20)
    assert told.returncode == 0, told.stderr
    assert len(re.findall("^call all_reduce", told.stdout, re.M)) == 5


@pytest.mark.parametrize("kept", ["all", "nothing", "no moments"])
def test_a_log_without_an_end_is_said_and_the_newest_record_is_now(job, kept):
    rank, = job.start(1)
    for _ in range(5):
        rank.do("call all_reduce 8")
    time.sleep(1.5)
    rank.do("call all_reduce 8")
    time.sleep(1)
    os.kill(monitors_of(job.number)[0], signal.SIGKILL)
    rank.kill()
    for log in [*job.dir.glob("flight/monitor.log"), *job.tmp.glob("*/*/*/monitor.log")]:
        whole = log.read_text().splitlines(True)
        if kept != "all":
            log.write_text("".join(line for line in whole if kept != "nothing" and '"time"' not in line))
    told = subprocess.run([DSHANG, "report", "--json", job.dir], capture_output=True, text=True, timeout=20)
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)
    assert found["verdict"] == "undecided" and 1 < found["as_of"] < 600
    assert any("has no end" in line for line in found["not_checked"])


def test_a_hang_is_found_in_a_log_without_an_end(tmp_path):
    """The monitor did not live to look at it."""
    with Job(tmp_path, DSHANG_STALL_AFTER="600") as job:
        ranks = job.start(2)
        for rank in ranks:
            rank.do("call all_reduce 8")
        ranks[0].do("wait all_reduce 8")
        ranks[1].do("record 3", answer=False)
        wait_for(lambda: lines(job, "death"))
        time.sleep(1)
        os.kill(monitors_of(job.number)[0], signal.SIGKILL)
        ranks[0].kill()
        for log in [*job.dir.glob("flight/monitor.log"), *job.tmp.glob("*/*/*/monitor.log")]:
            log.write_text("")
        told = subprocess.run([DSHANG, "report", "--json", job.dir], capture_output=True, text=True, timeout=20)
        assert 1 in deaths(json.loads(told.stdout)), told


def test_a_report_that_cannot_be_written_leaves_no_earlier_one_behind(tmp_path):
    full = tmp_path / "full"
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(full)], check=True)       # as root
    try:
        with Job(tmp_path) as job:
            job.dir = full / "out"
            job.env["DSHANG_DIR"] = str(job.dir)
            for rank in job.start(1):
                rank.end()
            job.ended()
            assert (job.dir / "report.txt").exists()
            job.stderr.truncate(0)
            ranks = job.start(2)
            with open(full / "filler", "wb") as filler, pytest.raises(OSError):
                while True:
                    os.write(filler.fileno(), b"x" * 4096)
            ranks[0].do("wait all_reduce 8")
            ranks[1].process.kill()
            wait_for(lambda: "No space left" in job.said())
            wait_for(lambda: not (job.dir / "report.txt").exists())
            ranks[0].kill()
            job.ended()
    finally:
        subprocess.run(["umount", str(full)], check=True)


def test_a_directory_that_cannot_be_written_is_said_once(tmp_path):
    with Job(tmp_path) as job:
        job.env["DSHANG_DIR"] = "/proc/no-such-place"
        assert job.start_monitor().returncode == 0
        ranks = [job.rank(r, 2) for r in range(2)]
        for rank in ranks:
            rank.do("comm")
            rank.do("call all_reduce 8")
        wait_for(lambda: "cannot write" in job.said())
        ranks[0].do("wait all_reduce 8")
        ranks[1].process.kill()
        wait_for(lambda: re.search(r"rank 1\b", job.said()))
        time.sleep(1)
        assert job.said().count("cannot write") == 1
        ranks[0].kill()
        job.ended()


def test_a_full_disk_is_said_once(tmp_path):
    """A file system of 1 MiB: directories fit, flight files do not."""
    full = tmp_path / "full"
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(full)], check=True)       # as root
    try:
        with Job(tmp_path) as job:
            job.dir = full / "out"
            job.env["DSHANG_DIR"] = str(job.dir)
            (full / "filler").write_bytes(b"x" * 1000000)
            for rank in job.start(2):
                rank.end()
            job.ended()
            assert job.said().count("No space left") <= 1
            assert monitors_of(job.number) == []
    finally:
        subprocess.run(["umount", str(full)], check=True)


def test_the_report_is_never_half_a_file(tmp_path):
    with Job(tmp_path, DSHANG_STALL_AFTER="1") as job:
        ranks = job.start(3)
        for rank in ranks[:2]:
            rank.do("wait all_reduce 8")
        ranks[2].process.kill()
        wait_for(lambda: (job.dir / "report.json").exists())
        end = time.monotonic() + 2
        while time.monotonic() < end:
            assert report(job)["findings"]


def test_another_node_writes_into_a_folder_of_its_own(tmp_path):
    with Job(tmp_path, GROUP_RANK="1") as job:
        assert job.start_monitor().returncode == 0
        rank = job.rank(2, 4, local_rank=0)
        rank.do("comm")
        folder = wait_for(lambda: (job.dir / "node-1" / "flight").exists() and job.dir / "node-1")
        rank.end()
        job.ended()
        assert not (job.dir / "report.json").exists()
        assert list(folder.glob("flight/rank-2.*.flight"))


def test_rank_0_that_comes_late_makes_it_the_head(tmp_path):
    with Job(tmp_path, GROUP_RANK="1") as job:
        assert job.start_monitor().returncode == 0
        late = job.rank(1, 2, local_rank=0)
        late.do("comm")
        wait_for(lambda: (job.dir / "node-1").exists())
        first = job.rank(0, 2)
        first.do("comm")
        wait_for(lambda: "watching 2 ranks" in job.said())
        for rank in job.ranks:
            rank.end()
        job.ended()
        assert report(job)["job"]["world_size"] == 2
        assert not (job.dir / "node-1").exists()


def test_without_a_directory_given_one_is_made_where_the_job_was_started(tmp_path):
    with Job(tmp_path) as job:
        del job.env["DSHANG_DIR"]
        assert job.start_monitor(cwd=tmp_path).returncode == 0
        rank = job.rank(0, 1)
        rank.do("comm")
        folder = wait_for(lambda: list(tmp_path.glob(f"dshang-{job.number:016x}-*")))[0]
        rank.end()
        job.ended()
        assert json.loads((folder / "report.json").read_text())["verdict"] == "healthy"


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


# ---- at a hang ---------------------------------------------------------------------------------------------------

def hang(job):
    ranks = job.start(2)
    for rank in ranks:
        rank.do("call all_reduce 8")
    ranks[0].do("wait all_reduce 8")
    ranks[1].process.kill()
    return ranks


def test_a_hang_may_end_the_job(tmp_path):
    with Job(tmp_path, DSHANG_ON_HANG="fail") as job:
        ranks = hang(job)
        assert ranks[0].process.wait(60) == -signal.SIGTERM
        job.ended()
        assert deaths(report(job)) == {1}


def test_a_hang_may_run_a_command(tmp_path):
    with Job(tmp_path, DSHANG_ON_HANG=f"exec:cp $DSHANG_REPORT/report.txt {tmp_path}/copy; exit 3") as job:
        hang(job)
        wait_for(lambda: (tmp_path / "copy").exists() and "rank 1" in (tmp_path / "copy").read_text())
        assert job.ranks[0].process.poll() is None


# ---- settings ---------------------------------------------------------------------------------------------------

def test_a_misspelt_variable_is_told_with_the_nearest_name(tmp_path):
    with Job(tmp_path, DSHANG_PERSISST="3") as job:
        job.start(1)
        assert re.search(r"DSHANG_PERSISST .*DSHANG_PERSIST\b", job.said())


def test_a_bad_value_is_told_with_its_range(tmp_path):
    with Job(tmp_path, DSHANG_POLL="fast") as job:
        job.start(1)
        assert re.search(r"DSHANG_POLL=fast .*0\.005\.\.5.*0\.05", job.said())
