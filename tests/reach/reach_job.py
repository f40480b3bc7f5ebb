"""Real programs under the real libdshang.so, with the real monitor and the simulated GPU.

TEST_BUILD: the build directory (default build/).  SCENARIO_SLACK: seconds added to every limit (default 2).
"""
import os
import pathlib
import subprocess
import sys
import textwrap
import time

from records import read_records

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("TEST_BUILD", ROOT / "build"))
PROGRAMS = BUILD / "reach"          # what CMake makes of programs/*.c
LIBRARY, SIMCUDA, DLSYM = BUILD / "libdshang.so", BUILD / "libsimcuda.so", BUILD / "libdshang_dlsym.so"
SLACK = float(os.environ.get("SCENARIO_SLACK", "2"))
OURS = ("DSHANG_", "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_", "SIMGPU_", "LD_PRELOAD", "TORCHELASTIC_", "GROUP_RANK")


class Job:
    """One folder, one job; `start` and `run` start its ranks.  Nothing of it is left when it is closed."""

    def __init__(self, folder):
        self.folder = folder
        self.dir = folder / "out"
        self.started = []

    def environment(self, rank=0, world=1, preload=(LIBRARY, SIMCUDA), **more):
        env = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        env.update(PYTHONPATH=str(HERE / "programs"), SIMGPU_QUIET="1", DSHANG_DIR=str(self.dir), DSHANG_PROBE="0",
                   DSHANG_PERSIST="0.2", DSHANG_SITE_SKIP="gpu.py", TMPDIR=str(self.folder), RANK=str(rank),
                   LOCAL_RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1", MASTER_PORT="29500",
                   REACH=str(PROGRAMS), PYTHONDONTWRITEBYTECODE="1")
        env["LD_PRELOAD"] = " ".join(map(str, preload))
        for name, value in more.items():
            env.pop(name, None)
            if value is not None:
                env[name] = str(value)
        return env

    def start(self, program, rank=0, world=1, preload=(LIBRARY, SIMCUDA), python=sys.executable, through=(), cwd=None,
              **more):
        """`program`: Python source, or a command.  `through`: a command that ends in the program (env, unshare)."""
        command = program
        if isinstance(program, str):
            file = self.folder / ("program%d.py" % len(self.started))
            file.write_text("from gpu import *\n" + textwrap.dedent(program))
            command = [python, str(file)]
        process = subprocess.Popen([*map(str, through), *map(str, command)], cwd=cwd or self.folder, text=True,
                                   env=self.environment(rank, world, preload, **more), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.started.append(process)
        return process

    def end(self, process, status=0, seconds=60):
        """(stdout, stderr) of a process that ends with that status."""
        try:
            out, err = process.communicate(timeout=seconds + SLACK)
        except subprocess.TimeoutExpired:
            raise AssertionError("not within %g s; its threads: %s" % (seconds + SLACK, threads_of(process.pid)))
        assert process.returncode == status, (process.returncode, out[-2000:], err[-4000:])
        return out, err

    def run(self, program, status=0, seconds=60, **options):
        return self.end(self.start(program, **options), status, seconds)

    def run_ranks(self, program, world, **options):
        """The program on every rank of a job; [(stdout, stderr)] by rank."""
        ranks = [self.start(program, rank=r, world=world, **options) for r in range(world)]
        return [self.end(rank) for rank in ranks]

    def left(self):
        """Pids of processes whose DSHANG_DIR lies in this job's folder: the monitors, after the ranks have ended."""
        wanted, found = b"\0DSHANG_DIR=" + os.fsencode(self.folder) + b"/", []
        for entry in os.listdir("/proc"):
            try:
                if entry.isdigit() and wanted in b"\0" + open("/proc/%s/environ" % entry, "rb").read():
                    found.append(int(entry))
            except OSError:
                pass
        return found

    def finished(self, seconds=20):
        """Waits until the job's monitor has ended."""
        wait_for(lambda: not self.left(), seconds)

    def records(self):
        """What the processes of the finished job recorded, by rank and time (records.Process)."""
        self.finished()
        return read_records(BUILD / "dshang", self.dir)

    def close(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        while pids := self.left():    # a monitor may still be starting, and dies later than it is told to
            for pid in pids:
                try:
                    os.kill(pid, 9)
                except ProcessLookupError:
                    pass
            time.sleep(0.01)


def threads_of(pid):
    """Name, state, place in the kernel and ticks of CPU of each thread: tells one that waits from one that gets no CPU."""
    found = []
    for task in pathlib.Path("/proc/%d/task" % pid).glob("*"):
        try:
            name, rest = (task / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
            found.append((name, rest.split()[0], (task / "wchan").read_text(), int(rest.split()[11])))
        except OSError:
            pass
    return found


def wait_for(condition, seconds=20):
    """The first true value of `condition()`."""
    end = time.monotonic() + seconds + SLACK
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def said(err):
    """dshang's lines, but for the one that says where the files are."""
    return [line for line in err.splitlines() if line.startswith("dshang:") and " watching " not in line]
