"""`dshang dry-run`: the whole, as a user starts it."""
import json
import subprocess
import sys
import time

import pytest
from simulated import BUILD, PROGRAMS, environment

DSHANG = str(BUILD / "dshang")


def dry_run(*arguments, tmp_path, **extra):
    env = environment(1, "int")
    for name in ("LD_PRELOAD", "PYTHONPATH", "SIMGPU_DEVICES", "SIMGPU_NUM", "SIMNCCL_DATA_CAP", "TRITON_LIBCUDA_PATH"):
        del env[name]                                                       # what dry-run itself has to set
    env.update(extra, DSHANG_DIR=str(tmp_path / "report"))
    return subprocess.run([DSHANG, "dry-run", *arguments], env=env, text=True, timeout=240, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def report_in(directory):
    """The files are finished within 2 s after the output is closed, on a loaded machine somewhat later."""
    end = time.monotonic() + 10
    while not (directory / "report.json").exists():
        assert time.monotonic() < end, sorted(directory.rglob("*"))
        time.sleep(0.05)
    return json.loads((directory / "report.json").read_text())


def test_a_python_program_is_started_once_a_rank(tmp_path):
    done = dry_run("-n", "2", "--", sys.executable, str(PROGRAMS / "collectives.py"), tmp_path=tmp_path)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("values right") == 2
    assert "dry run of 2 ranks" in done.stdout
    assert report_in(tmp_path / "report")["job"]["world_size"] == 2


def test_a_launcher_gets_the_number_of_ranks(tmp_path):
    done = dry_run("-n", "2", "--numerics", "small", "--", "torchrun", "--standalone", str(PROGRAMS / "ddp.py"),
                   tmp_path=tmp_path, PYTHONPATH=str(PROGRAMS))
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("training right") == 2


def test_memory_is_that_of_the_named_gpu(tmp_path):
    code = "import torch; print(torch.cuda.get_device_properties(0).total_memory >> 20, torch.cuda.device_count())"
    done = dry_run("-n", "3", "--gpu", "a100-40g", "--", "sh", "-c", f'{sys.executable} -c "{code}"', tmp_path=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "40960 3" in done.stdout


@pytest.mark.parametrize("arguments, said", [
    (("-n", "0", "--", "true"), "the number of ranks is 0, not 1 to 64"),
    (("-n", "2", "--gpu", "abacus", "--", "true"), "unknown GPU abacus; known are h100-80g"),
    (("-n", "2", "--numerics", "exact", "--", "true"), "numerics are exact, not off, int or small"),
    (("-n", "2"), "command"),
])
def test_bad_input_gets_one_line(arguments, said, tmp_path):
    done = dry_run(*arguments, tmp_path=tmp_path)
    assert done.returncode == 2
    assert said in done.stdout and done.stdout.count("\n") == 1, done.stdout
