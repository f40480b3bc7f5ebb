"""Programs that inherit the preload and have nothing to do with NCCL run as without it: same output, no file, no thread.

TEST_BUILD: the build directory (default build/).  TEST_PYTHONS: more interpreters, separated by blanks.
"""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
BUILD = pathlib.Path(os.environ.get("TEST_BUILD", ROOT / "build"))
PYTHONS = [sys.executable] + os.environ.get("TEST_PYTHONS", "").split()

COUNT = """
import os, socket
print(sorted(os.listdir("/proc/self/task")) == [str(os.getpid())], len(os.listdir("/proc/self/fd")))
"""
WORK = """
import ctypes, json, multiprocessing, os, signal, sqlite3, ssl, subprocess, sys, threading, time

def square(n):
    return n * n

def threads_left():
    # A thread that was joined is still listed for a moment.
    until = time.monotonic() + 5
    while len(os.listdir("/proc/self/task")) > 1 and time.monotonic() < until:
        time.sleep(0.004)
    return len(os.listdir("/proc/self/task"))

if __name__ == "__main__":
    print(subprocess.run(["echo", "child"], capture_output=True, text=True).stdout)
    thread = threading.Thread(target=print, args=("thread",))
    thread.start()
    thread.join()
    # Python 3.12 warns of a fork beside threads, those that were joined included.
    threads_left()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(square, range(5)))
    threads_left()
    pid = os.fork()
    if pid == 0:
        os._exit(7)
    print(os.waitpid(pid, 0)[1])
    ctypes.set_errno(0)
    print(ctypes.CDLL(None).getpid() == os.getpid(), threads_left())
    print(signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT))
"""
C_PROGRAM = '#include <stdio.h>\nint main(void) { printf("compiled\\n"); return 3; }\n'
NINJA_FILE = "rule copy\n  command = cp $in $out\nbuild b: copy a\nbuild c: copy b\n"


def folder_state(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if ".git/" not in str(path))


def run(command, folder, preload, **more):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("DSHANG_", "LD_PRELOAD", "RANK", "WORLD_SIZE"))}
    env.update(more, TMPDIR=str(folder / "tmp"), LC_ALL="C", PYTHONDONTWRITEBYTECODE="1")
    if preload:
        env["LD_PRELOAD"] = str(BUILD / "libdshang.so")
    ended = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    return ended.returncode, ended.stdout, ended.stderr


def prepared(folder):
    folder.mkdir()
    (folder / "tmp").mkdir()
    (folder / "program.c").write_text(C_PROGRAM)
    (folder / "count.py").write_text(COUNT)
    (folder / "work.py").write_text(WORK)
    (folder / "build.ninja").write_text(NINJA_FILE)
    (folder / "a").write_text("a")
    return folder


COMMANDS = {
    "true": ["/bin/true"],
    "false": ["/bin/false"],
    "bash": ["bash", "-c", "x=$(echo a | tr a b); (exit 4); echo $x $?; ls /proc/self/task | wc -l; exec 2>&1; ls /nonexistent"],
    "gcc": ["sh", "-c", "gcc -O1 -o program program.c && ./program; echo $?"],
    "git": ["sh", "-c", "git init -q . && git add a && git -c user.name=n -c user.email=e commit -qm m && git log --format=%s"],
    "ninja": ["ninja", "-v"],
    **{f"count {python}": [python, "count.py"] for python in PYTHONS},
    **{f"work {python}": [python, "work.py"] for python in PYTHONS},
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("rank", ({}, {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "DSHANG_DIR": "reports"}),
                         ids=("plain", "rank"))
def test_as_without(tmp_path, name, rank):
    command = COMMANDS[name]
    assert shutil.which(command[0]), f"{command[0]} is not installed"
    results = {}
    for preload in (False, True):
        folder = prepared(tmp_path / "here")
        results[preload] = run(command, folder, preload, **rank), folder_state(folder)
        shutil.rmtree(folder)
    assert results[True] == results[False]


def test_disabled_is_inert_with_nccl_too(tmp_path):
    """DSHANG_DISABLE=1 with the simulated GPU: a communicator is made, and there is no file, thread or word of dshang."""
    program = tmp_path / "program.py"
    program.write_text("""
import ctypes, os
process = ctypes.CDLL(None)
comm, identity = ctypes.c_void_p(), (ctypes.c_char * 128)()
class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]
identity = UniqueId()
assert process.ncclGetUniqueId(ctypes.byref(identity)) == 0
process.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, UniqueId, ctypes.c_int]
assert process.ncclCommInitRank(ctypes.byref(comm), 1, identity, 0) == 0
names = [open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")]
print([name for name in names if "dshang" in name], os.path.exists("reports"))
""")
    env = {name: value for name, value in os.environ.items() if not name.startswith("DSHANG_")}
    env.update(LD_PRELOAD=f"{BUILD / 'libdshang.so'} {BUILD / 'libsimcuda.so'}", DSHANG_DISABLE="1", RANK="0", WORLD_SIZE="1",
               DSHANG_DIR="reports", SIMGPU_QUIET="1")
    ended = subprocess.run([sys.executable, str(program)], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "[] False\n"), ended.stderr
    assert "dshang" not in ended.stderr
    assert sorted(os.listdir(tmp_path)) == ["program.py"]
