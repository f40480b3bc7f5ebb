"""Jobs of rank processes without training, for the tests of the monitor."""
import json
import os
import random
import re
import select
import subprocess
import time

from monitors import monitors_of

BUILD = os.environ.get("TEST_BUILD") or os.path.join(os.path.dirname(__file__), "..", "..", "build")
DSHANG = os.path.join(BUILD, "dshang")
FAKE_RANK = os.path.join(BUILD, "fake_rank")
PATIENCE = float(os.environ.get("TEST_PATIENCE", "60"))   # a test machine is loaded


def wait_for(condition, patience=PATIENCE):
    """The first true value of `condition()`; fails after `patience` seconds."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"not within {patience} s: {condition}")


class Rank:
    def __init__(self, job, rank, world, stderr=None, env=None, **options):
        command = [FAKE_RANK, "--job", f"{job:x}", "--rank", str(rank), "--world", str(world)]
        for name, value in options.items():
            command += ["--" + name.replace("_", "-"), str(value)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, env=env)
        self.heard = b""

    @property
    def pid(self):
        return self.process.pid

    def hear(self, pattern, patience=PATIENCE):
        """Waits for a line that matches; returns the match."""
        end = time.monotonic() + patience
        while True:
            match = re.search(pattern, os.fsdecode(self.heard), re.M)
            if match:
                self.heard = self.heard[len(os.fsencode(os.fsdecode(self.heard)[:match.end()])):]
                return match
            left = end - time.monotonic()
            assert left > 0, f"rank did not say {pattern!r} but {self.heard!r}"
            if select.select([self.process.stdout], [], [], left)[0]:
                part = os.read(self.process.stdout.fileno(), 65536)
                assert part or re.search(pattern, os.fsdecode(self.heard), re.M), f"rank ended, saying {self.heard!r}"
                self.heard += part

    def do(self, command, answer=True):
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()
        if answer:
            self.hear("^ok$")

    def end(self, command="exit 0"):
        self.do(command, answer=False)
        return self.process.wait(PATIENCE)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Job:
    """A job with its monitor; everything it started is gone when it is left."""

    def __init__(self, tmp_path, **variables):
        self.number = random.getrandbits(60) | 1
        self.dir = tmp_path / "out"
        self.tmp = tmp_path / "tmp"
        self.tmp.mkdir(exist_ok=True)
        self.stderr_path = tmp_path / f"stderr.{self.number:x}"
        self.stderr = open(self.stderr_path, "wb")
        self.env = dict(os.environ, DSHANG_DIR=str(self.dir), TMPDIR=str(self.tmp), DSHANG_PERSIST="0.2", **variables)
        self.ranks = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for rank in self.ranks:
            rank.kill()
        self.stderr.close()
        wait_for(lambda: not monitors_of(self.number))

    def start_monitor(self, **options):
        return subprocess.run([DSHANG, "monitor", "--job", f"{self.number:x}"], env=self.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=self.stderr, timeout=PATIENCE, **options)

    def rank(self, rank, world, welcome=True, **options):
        options.setdefault("stderr", self.stderr)
        one = Rank(self.number, rank, world, env=self.env, **options)
        self.ranks.append(one)
        if welcome:
            one.hear("^welcome")
        return one

    def start(self, world, **options):
        """The monitor and all ranks, each with the communicator of all."""
        assert self.start_monitor().returncode == 0
        ranks = [self.rank(r, world, **options) for r in range(world)]
        for one in ranks:
            one.do("comm")
        wait_for(lambda: "watching" in self.said())
        return ranks

    def said(self):
        return os.fsdecode(self.stderr_path.read_bytes())

    def ended(self):
        """Waits until the monitor has gone."""
        wait_for(lambda: not monitors_of(self.number))


def report(job):
    return json.loads((job.dir / "report.json").read_text())


def journal(job):
    path = job.dir / "flight" / "monitor.log"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def lines(job, kind):
    return [line for line in journal(job) if line["news"] == kind]


def deaths(report):
    return {rank for finding in report["findings"] if finding["class"] == "rank-dead" for rank in finding["suspects"]}
