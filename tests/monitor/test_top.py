"""`dshang top`: a running job as a table, once and on a terminal."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios

import pyte
from fakejob import DSHANG, Job, monitors_of, wait_for

COLUMNS, LINES = 80, 24


def top(*arguments, job=None, **options):
    return subprocess.run([DSHANG, "top", *map(str, arguments)], capture_output=True, text=True, timeout=30,
                          env=job.env if job else None, **options)


class Terminal:
    """A terminal of 80 columns and 24 lines with `dshang top` on it."""

    def __init__(self, job, *arguments):
        pid, self.fd = pty.fork()
        if pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
            os.execve(DSHANG, [DSHANG, "top", *arguments], dict(job.env, TERM="xterm", LC_ALL="C.UTF-8"))
        self.pid, self.screen = pid, pyte.Screen(COLUMNS, LINES)
        self.stream = pyte.ByteStream(self.screen)

    def lines(self):
        while select.select([self.fd], [], [], 0)[0]:
            try:
                self.stream.feed(os.read(self.fd, 65536))
            except OSError:                                      # the program has ended
                break
        return self.screen.display

    def shows(self, pattern):
        """Waits until a line matches; the line."""
        return wait_for(lambda: next((line for line in self.lines() if re.search(pattern, line)), None), 20)

    def press(self, keys):
        os.write(self.fd, keys)

    def status(self):
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def waiting(job):
    ranks = job.start(3)
    for rank in ranks:
        rank.do("step 7")
        rank.do("call all_reduce 8")
    for rank in ranks[:2]:
        rank.do("wait all_gather 64")
    return ranks


def test_once_prints_every_rank(tmp_path):
    with Job(tmp_path) as job:
        waiting(job)
        def table():
            shown = top("--once", job.dir, job=job)
            assert shown.returncode == 0, shown.stderr
            return re.search(r"^ +0 waits ", shown.stdout, re.M) and shown.stdout
        lines = wait_for(table).splitlines()
        assert re.match(r"3 of 3 ranks, up 0:00:\d\d(, \d+ s ago)?  ", lines[0]) and lines[0].endswith(str(job.dir)[-20:])
        assert re.match(r"^ +1 waits +7 .*all_gather 2 world", lines[3]), lines
        assert re.match(r"^ +2 (runs|on the host) +7 .*all_reduce 1 world", lines[4]), lines
        assert lines[-1] == "nothing found so far"
        grouped = top("--once", "--group", job.dir, job=job).stdout
        assert re.search(r"^ +0, 1 waits", grouped, re.M), grouped


def test_a_finding_and_an_ending_are_shown(tmp_path):
    with Job(tmp_path, DSHANG_STALL_AFTER="2") as job:
        ranks = waiting(job)
        ranks[2].kill()
        wait_for(lambda: (job.dir / "report.json").exists())
        shown = wait_for(lambda: "signal 9" in (text := top("--once", job.dir, job=job).stdout) and text)
        assert re.search(r"^\[rank-dead\] rank 2 ", shown, re.M), shown


def test_the_job_may_be_named_or_left_out(tmp_path):
    with Job(tmp_path) as job:
        job.start(1)
        name = f"{job.number:016x}"
        for words in ((name,), (name[:6],), ()):
            shown = wait_for(lambda: (told := top("--once", *words, job=job)).returncode == 0 and told.stdout)
            assert str(job.dir)[-20:] in shown
        told = top("--once", "ffffffffffffffff0", job=job)
        assert told.returncode == 2 and name in told.stderr and str(job.dir) in told.stderr
    told = top("--once", job=job)
    assert told.returncode == 2 and "no job of this user runs on this machine" in told.stderr


def test_a_job_that_was_killed_with_its_monitor_is_not_meant(tmp_path):
    with Job(tmp_path) as dead:
        dead.start(1)
        wait_for(lambda: list(dead.tmp.glob(f"dshang-*/{dead.number:016x}/attempt-*/directory")))
        for monitor in monitors_of(dead.number):
            os.kill(monitor, signal.SIGKILL)
    with Job(tmp_path) as job:
        job.start(1)
        told = wait_for(lambda: (told := top("--once", job=job)).returncode == 0 and told)
        assert list(job.tmp.glob(f"dshang-*/{dead.number:016x}")) and str(job.dir)[-20:] in told.stdout


def test_without_a_terminal_it_says_what_to_do(tmp_path):
    with Job(tmp_path) as job:
        job.start(1)
        told = top(job.dir, job=job, stdin=subprocess.DEVNULL)
        assert (told.returncode, told.stdout) == (2, "") and "--once" in told.stderr


def test_live_on_a_small_terminal(tmp_path):
    with Job(tmp_path) as job:
        ranks = waiting(job)
        terminal = Terminal(job, str(job.dir), "--interval", "0.2")
        terminal.shows(r"^ +0 waits +7 .*all_gather 2 world")
        assert re.match("3 of 3 ranks, up", terminal.lines()[0])
        assert terminal.lines()[-4].startswith("nothing found so far")
        ranks[2].do("step 12345")
        terminal.shows(r"^ +2 .* 12345 ")
        terminal.press(b"g")
        terminal.shows(r"^ +0, 1 waits")
        terminal.press(b"q")
        assert terminal.status() == 0


def test_live_with_more_ranks_than_lines(tmp_path):
    with Job(tmp_path) as job:
        for rank in job.start(24):
            rank.do("call all_reduce 8")
        terminal = Terminal(job, str(job.dir), "--interval", "0.2")
        terminal.shows(r"^ *0-23 ")
        terminal.press(b"g")
        terminal.shows(r"6 rows below")
        terminal.press(b"\x1bOB")                                # arrow down
        terminal.shows(r"5 rows below")
        assert not any(line.startswith("    0 ") for line in terminal.lines())
        terminal.press(b"q")
        assert terminal.status() == 0
