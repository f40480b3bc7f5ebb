"""record_jobs.py [NAME...]: runs the failing jobs of these tests and keeps what they printed in fixtures/jobs/.

Only paths of this machine are replaced.  The jobs run on simulated GPUs without dshang's own lines (DSHANG_DISABLE=1).  TEST_BUILD:
the build directory (default build/).  The interpreter that runs this file needs torch and DeepSpeed.
"""
import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).absolute().parent
BUILD = pathlib.Path(os.environ.get("TEST_BUILD", HERE.parents[2] / "build")).absolute()
JOBS = HERE.parent / "fixtures" / "jobs"
PATIENCE = 1800         # seconds; a job waits for its own time-outs


@dataclass
class Job:
    command: list
    ranks: int = 2
    options: list = field(default_factory=list)     # of dshang dry-run
    settings: dict = field(default_factory=dict)    # environment
    files: dict = field(default_factory=dict)       # in the folder in which it runs
    simulated: bool = True                          # else no GPU at all
    before: list = None                             # a command that leaves something in the same folder
    holds_port: bool = False                        # another process has the port


def deepspeed(program, mistake, *options):
    return ["deepspeed", "--master_port", "{port}", *options, str(HERE / program), mistake]


def torchrun(program, mistake, *options):
    return ["torchrun", "--master-port", "{port}", *options, str(HERE / program), mistake]


def engine(mistake, **how):
    return Job(deepspeed("failing_engine.py", mistake), **how)


def loop(mistake, *options, ranks=3, **how):
    return Job(torchrun("failing_loop.py", mistake, *options), ranks=ranks, **how)


SMALL = ["--numerics", "small"]
RECORDED = {
    # programs that failing_job.py holds
    **{name: Job(torchrun("failing_job.py", name), ranks=3) for name in ("other_call", "killed", "raises", "slow", "full_disk")},
    **{name: Job(deepspeed("failing_job.py", name)) for name in ("wrong_batch", "borrowed_weight")},
    # configurations
    **{name: engine(name) for name in ("both_precisions", "unknown_optimizer", "misspelt_key")},
    "no_launcher": Job(["python", "-c", "import deepspeed; deepspeed.init_distributed()"], simulated=False),
    "hostfile": Job(["deepspeed", "--hostfile", "hosts", str(HERE / "failing_job.py"), "raises"], simulated=False,
                    files={"hosts": "worker-1 slots = 2\n"}),
    "no_compiler": engine("no_compiler", settings={"CUDA_HOME": "/nowhere"}),
    # memory
    "too_large": engine("too_large", options=["--gpu", "t4-16g"]),
    "long_sample": loop("long_sample", options=["--gpu", "t4-16g"]),
    # numbers
    "nan_loss": engine("nan_loss", options=SMALL),
    "smallest_scale": engine("smallest_scale", options=SMALL),
    # files
    "no_checkpoint": engine("no_checkpoint"),
    "other_ranks": engine("other_ranks", ranks=3, before=deepspeed("failing_engine.py", "saved", "--num_gpus", "2")),
    "other_model": loop("other_model", ranks=2),
    "no_data": loop("no_data"),
    "disk_full_at_save": loop("disk_full_at_save", ranks=2),
    # start
    "port_in_use": engine("plain", holds_port=True),
    "port_in_use_torchrun": loop("plain", holds_port=True),
    "missing_node": loop("plain", "--nnodes", "2", "--node-rank", "0", "--nproc-per-node", "2", "--master-addr", "127.0.0.1",
                         "--rdzv-conf", "timeout=30", ranks=2),
    "too_many_ranks": loop("plain", "--nproc-per-node", "3", ranks=2),
    # ranks that part, and ranks that go
    "fewer_batches": loop("fewer_batches"),
    "different_shapes": loop("different_shapes", settings={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}),
    "peer_gone": loop("peer_gone"),
    "killed_by_host": engine("killed_by_host"),
    "crash": loop("crash"),
}


@contextlib.contextmanager
def port(held):
    with socket.socket() as one:
        one.bind(("", 0))
        number = one.getsockname()[1]
        if held:
            one.listen()
            yield number
    if not held:
        yield number


def started(command, job, folder, number):
    env = {key: value for key, value in os.environ.items() if not key.startswith(("DSHANG_", "SIMGPU_", "LD_PRELOAD"))}
    env.update(job.settings, DSHANG_DISABLE="1", PATH=os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"])
    words = [word.replace("{port}", str(number)) for word in command]
    if job.simulated:
        words = [BUILD / "dshang", "dry-run", "-n", str(job.ranks), *job.options, "--", *words]
    return subprocess.run(words, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=PATIENCE).stdout


def without_places(text, folder):
    """The paths of this machine."""
    for place, name in ((folder, "run"), (HERE, "job"), (BUILD, "dshang"), (sys.prefix, "venv"), (os.path.realpath(sys.prefix), "venv"),
                        (sys.base_prefix, "python"), (str(pathlib.Path.home()) + "/", "")):
        text = text.replace(str(place), "/home/user/" + name)
    return text


def main(names):
    if names == ["--list"]:
        return print(*sorted(RECORDED), sep="\n")
    for name in names or sorted(RECORDED):
        job = RECORDED[name]
        with tempfile.TemporaryDirectory() as folder, port(job.holds_port) as number:
            for file, text in job.files.items():
                (pathlib.Path(folder) / file).write_text(text)
            if job.before:
                started(job.before, job, folder, number)
            text = started(job.command, job, folder, number).decode(errors="replace")
            (JOBS / (name + ".log")).write_text(without_places(text, folder))
        print(name, len(text), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
