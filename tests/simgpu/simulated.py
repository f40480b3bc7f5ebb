"""Starts programs on the simulated GPU, without dshang in front."""
import os
import pathlib
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("TEST_BUILD", HERE.parent.parent / "build")).resolve()
PROGRAMS = HERE / "programs"
SCRIPTS = pathlib.Path(sys.executable).parent     # torchrun and deepspeed of this Python

# Patience; the programs need far less on a quiet machine.
SECONDS = float(os.environ.get("SIMGPU_TEST_SECONDS", "240"))


def environment(ranks, numerics, **extra):
    foreign = ("SIM", "DSHANG_", "TORCH_NCCL_", "LD_PRELOAD")
    env = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
    env.update(
        LD_PRELOAD=str(BUILD / "libsimcuda.so"), SIMGPU_DEVICES=str(ranks), SIMGPU_NUM=numerics,
        SIMNCCL_DATA_CAP="0" if numerics == "small" else "1M", TRITON_LIBCUDA_PATH=str(BUILD),
        PYTHONPATH=f"{BUILD / 'simgpu_python'}{os.pathsep}{PROGRAMS}",
        PATH=f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}",
        OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1",
    )
    env.update(extra)
    return env


def run(command, ranks=1, numerics="int", cwd=None, **extra):
    """The finished process; `stdout` has both streams. What is not finished in time is ended with all it started."""
    process = subprocess.Popen(command, env=environment(ranks, numerics, **extra), cwd=cwd, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True)
    try:
        output, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        end_session(process.pid)
        output, _ = process.communicate()
        raise AssertionError(f"not finished after {SECONDS:g} s:\n{output}") from None
    return subprocess.CompletedProcess(command, process.returncode, output)


def end_session(leader):
    """Launchers give their ranks process groups of their own, but all stay in the session."""
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and os.getsid(int(entry)) == leader:
                os.kill(int(entry), signal.SIGKILL)
        except OSError:
            continue


def python(code_or_program, *arguments, **options):
    how = [str(PROGRAMS / code_or_program)] if code_or_program.endswith(".py") else ["-c", code_or_program]
    return run([sys.executable, *how, *arguments], **options)


def torchrun(program, *arguments, ranks=2, **options):
    # --standalone takes a free port of its own.
    return run([sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={ranks}",
                str(PROGRAMS / program), *arguments], ranks=ranks, **options)


def said(process, word):
    """What follows `word` in the lines that begin with it, in any order of the ranks."""
    return sorted(line.split(word, 1)[1].strip() for line in process.stdout.splitlines() if line.startswith(word))
