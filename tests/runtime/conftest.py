"""Ranks under the preload, with the simulated GPU behind it and a monitor made of Python.

TEST_BUILD: the build directory (default build/).
"""
import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap
import time

import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("TEST_BUILD", ROOT / "build"))
sys.path.insert(0, str(HERE))

from flight_image import Image  # noqa: E402


class Bench:
    """A folder for one job; the library lies in it alone, so that no real monitor is beside it."""

    def __init__(self, folder):
        self.folder = folder
        self.build = BUILD
        self.library = folder / "libdshang.so"
        shutil.copy(BUILD / "libdshang.so", self.library)
        self.seen = folder / "seen"
        self.seen.mkdir()
        # Started by the interpreter that runs the tests: a `python3` of the PATH may be a slow shim.
        self.monitor = folder / "fake_monitor"
        self.monitor.write_text("#!%s -I\n%s" % (sys.executable, (HERE / "fake_monitor.py").read_text()))
        self.monitor.chmod(0o755)
        self.started = []

    def environment(self, preload=True, **more):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(("DSHANG_", "RANK", "WORLD_SIZE", "LOCAL_RANK", "SIMGPU_", "LD_PRELOAD"))}
        env.update(PYTHONPATH=str(HERE / "programs"), FAKE_MONITOR_DIR=str(self.seen), SIMGPU_QUIET="1",
                   DSHANG_MONITOR=str(self.monitor), DSHANG_DIR=str(self.folder / "out"), DSHANG_PROBE="0",
                   RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(os.getpid()))
        libraries = [self.library] if preload else []
        env["LD_PRELOAD"] = " ".join(map(str, libraries + [BUILD / "libsimcuda.so"]))
        env.update({name: value for name, value in more.items() if value is not None})
        for name, value in more.items():
            if value is None:
                env.pop(name, None)
        return env

    def start(self, program, preload=True, stderr=subprocess.PIPE, stdin=None, through=(), **environment):
        """`through`: a command that ends in the program, e.g. a shell that changes the descriptors first."""
        file = self.folder / ("program%d.py" % len(self.started))
        file.write_text("from little import *\n" + textwrap.dedent(program))
        rank = subprocess.Popen([*through, sys.executable, str(file)], env=self.environment(preload, **environment), text=True,
                                stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, cwd=self.folder)
        self.started.append(rank)
        return rank

    def run(self, program, preload=True, status=0, watched=True, **environment):
        """Runs it to its end, as its monitor sees it (`watched`: it still has one then); returns (stdout, stderr)."""
        rank = self.start(program, preload, **environment)
        out, err = rank.communicate(timeout=60)
        assert rank.returncode == status, (rank.returncode, out[-2000:], err[-4000:])
        rank_pid = rank.pid
        if watched and (self.seen / ("flight.%d" % rank_pid)).exists():
            self.wait(lambda: self.events("gone", pid=rank_pid))
        self.pid = rank_pid
        return out, err

    def events(self, what, **fields):
        found = []
        for path in sorted(glob.glob(str(self.seen / "events.*"))):
            for line in open(path):
                event = json.loads(line) if line.endswith("\n") else {}
                if event.get("what") == what and all(event[k] == v for k, v in fields.items()):
                    found.append(event)
        return found

    def wait(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "waited in vain; events: %s" % [open(p).read() for p in glob.glob(str(self.seen / "events.*"))]
            time.sleep(0.02)

    def image(self, pid=None):
        return Image((self.seen / ("flight.%d" % (pid or self.pid))).read_bytes())


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path)
    yield made
    for rank in made.started:
        if rank.poll() is None:
            rank.kill()
            rank.wait()
    for event in made.events("started"):
        try:
            with open("/proc/%d/cmdline" % event["monitor"]) as line:
                if "fake_monitor" in line.read():
                    os.kill(event["monitor"], 9)
        except OSError:
            pass
