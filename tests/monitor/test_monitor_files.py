"""The monitor from outside: the files that it keeps, and disks that take none."""
import json
import os
import re
import signal
import stat
import subprocess
import time

import pytest

from fakejob import DSHANG, Job, deaths, lines, monitors_of, report, wait_for


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


def test_a_report_of_the_users_own_stays(tmp_path):
    with Job(tmp_path) as job:
        job.dir.mkdir()
        for name in ("report.txt", "flight"):
            (job.dir / name).write_text("of the user")
        (tmp_path / "elsewhere").write_text("of the user")
        (job.dir / "report.json").symlink_to(tmp_path / "elsewhere")
        ranks = job.start(2)
        ranks[0].do("call all_reduce 8")
        ranks[0].do("wait all_reduce 8")
        ranks[1].process.kill()
        wait_for(lambda: re.search(r"file of your own and stays; the report is in .*attempt-1/", job.said()))
        ranks[0].kill()
        job.ended()
        for name in ("report.txt", "report.json", "flight"):
            assert (job.dir / name).read_text() == "of the user"
        assert (job.dir / "attempt-1" / "report.txt").exists() and (job.dir / "attempt-1" / "report.json").exists()


def hostile_pipe(folder):
    os.mkfifo(folder / "rank-1.1.flight")


def hostile_device(folder):
    (folder / "rank-1.1.flight").symlink_to("/dev/zero")


def hostile_length(folder):
    with open(folder / "rank-1.1.flight", "w") as file:
        file.truncate(20 << 30)


def hostile_note(folder):
    os.mkfifo(folder / "spool.elsewhere")


@pytest.mark.parametrize("hostile", [hostile_pipe, hostile_device, hostile_length, hostile_note])
def test_report_reads_no_file_that_no_job_writes(tmp_path, hostile):
    with Job(tmp_path) as job:
        for rank in job.start(1):
            rank.end()
        job.ended()
        folder = (job.dir / "flight").resolve()
        hostile(folder)
        told = subprocess.run(["prlimit", "--as=%d" % (2 << 30), DSHANG, "report", "--json", job.dir], capture_output=True,
                              text=True, timeout=20)
        found = json.loads(told.stdout)
        named = [line for line in found["not_checked"] if "rank-1.1.flight" in line]
        assert len(named) == (hostile is not hostile_note), told


def test_directories_of_two_jobs_are_not_put_together(tmp_path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        with Job(tmp_path / name) as job:
            for rank in job.start(1):
                rank.do("call all_reduce 8")
                rank.end()
            job.ended()
    command = [DSHANG, "report", tmp_path / "one" / "out", tmp_path / "other" / "out"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=20)
    assert told.returncode == 2 and "is of another job than" in told.stderr and not told.stdout, told
