"""Starts the examples as a user does, on simulated GPUs, with and without dshang."""
import json
import os
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
BUILD = os.path.abspath(os.environ.get("TEST_BUILD", os.path.join(ROOT, "build")))
EXAMPLES, PROGRAMS = os.path.join(ROOT, "examples"), os.path.join(HERE, "programs")
RANKS = int(os.environ.get("E2E_RANKS", "2"))
LONG = RANKS > 2 or os.environ.get("E2E_LONG", "0") != "0"      # all programs with all launchers, not only a few
SLACK = float(os.environ.get("SCENARIO_SLACK", "2"))    # a test machine is loaded
END = 300 + SLACK                                       # no job takes so long


def path_of(name):
    """Of an example, or of a program of these tests."""
    return next(path for path in (os.path.join(folder, name + ".py") for folder in (EXAMPLES, PROGRAMS)) if os.path.exists(path))


def line_of(name, text):
    """The number of the one line of a program that holds `text`, as reports name it."""
    with open(path_of(name)) as file:
        found = [number for number, line in enumerate(file, 1) if text in line]
    assert len(found) == 1, (name, text, found)
    return found[0]


def deepspeed(name, *arguments):
    return ["deepspeed", "--master_port", "29%03d" % (os.getpid() % 1000), "--num_gpus", str(RANKS), path_of(name), *arguments]


def torchrun(name, *arguments):
    return ["torchrun", "--master_port", "29%03d" % (os.getpid() % 1000), "--nproc_per_node", str(RANKS), path_of(name),
            *arguments]


LAUNCHERS = {"deepspeed": deepspeed, "torchrun": torchrun}


def ways(programs, few):
    """[(program, launcher)]: all of them with both launchers in the long part, else the few that are named so."""
    return [(name, launcher) for name in programs for launcher in LAUNCHERS] if LONG else list(few)


class Job:
    """One started job; everything it started ends with it."""

    def __init__(self, command, folder, with_dshang=True, numerics="small", gpu="h100-80g", within=(), **settings):
        """`within`: a command that starts it."""
        self.folder, self.ended = str(folder), False
        self.directory = os.path.join(self.folder, "dshang")
        self.log_path = os.path.join(self.folder, "log")
        env = {key: value for key, value in os.environ.items() if not key.startswith(("DSHANG_", "SIMGPU_", "LD_PRELOAD"))}
        env["PATH"] = os.path.dirname(sys.executable) + os.pathsep + env["PATH"]
        env.update(DSHANG_DIR=self.directory, **settings)
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [settings.get("PYTHONPATH"), EXAMPLES]))
        if not with_dshang:
            env["DSHANG_DISABLE"] = "1"
        command = [*within, os.path.join(BUILD, "dshang"), "dry-run", "-n", str(RANKS), "--numerics", numerics, "--gpu", gpu, "--", *command]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                            start_new_session=True, cwd=self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def log(self):
        with open(self.log_path, errors="replace") as file:
            return file.read()

    def report(self):
        try:
            with open(os.path.join(self.directory, "report.json")) as file:
                return json.load(file)
        except FileNotFoundError:
            return None

    def text(self):
        with open(os.path.join(self.directory, "report.txt")) as file:
            return file.read()

    def lines(self, pattern):
        """Groups of all matches in what the ranks printed."""
        return re.findall(pattern, self.log(), re.M)

    def wait_for(self, what, seconds, condition):
        """Returns condition() as soon as it holds; fails with the job's log."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            if self.process.poll() is not None:               # the monitor finishes its files within 2 s
                end = end if self.ended else min(end, time.monotonic() + 2 + SLACK)
                self.ended = True
            time.sleep(0.1)
        state = "it ended with %s" % self.process.returncode if self.ended else "it still runs"
        raise AssertionError("no %s (%s):\n%s" % (what, state, self.log()[-3000:]))

    def end(self):
        """Waits for the job to end by itself; its exit status."""
        return self.process.wait(timeout=END)

    def stop(self):
        """Ends the job's own process group, kindly at first."""
        for signum, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 10)):
            try:
                os.killpg(self.process.pid, signum)
            except ProcessLookupError:
                break
            end = time.monotonic() + patience
            while time.monotonic() < end and self.living():
                time.sleep(0.1)
        self.process.wait()

    def living(self):
        """Pids of the job's processes, the monitor left out (it ends by itself)."""
        self.process.poll()
        found = []
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/stat") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
                if entry.isdigit() and int(fields[2]) == self.process.pid and fields[0] != "Z":
                    found.append(int(entry))
            except (OSError, IndexError):
                continue
        return found


def losses(job):
    """{(rank, what the line says before the number)} -> number, from the lines that examples print."""
    return {(rank, what): number for rank, what, number in
            job.lines(r"^\[rank (\d+)\] (step \d+ (?:loss|evaluation)) (\S+)$")}
