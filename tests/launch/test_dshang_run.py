"""`dshang run`: the preload and DSHANG_* reach every rank, with the launchers themselves."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

from nodes import Nodes

HERE = pathlib.Path(__file__).parent
BUILD = pathlib.Path(os.environ.get("TEST_BUILD", HERE.parent.parent / "build")).absolute()
DSHANG, LIBRARY, SAY = str(BUILD / "dshang"), str(BUILD / "libdshang.so"), str(HERE / "programs" / "say.py")
DLSYM = str(BUILD / "libdshang_dlsym.so")
SIMULATED = str(BUILD / "libsimcuda.so")   # a library that does nothing in these programs, as another preload
END = 150 + float(os.environ.get("SCENARIO_SLACK", "2"))
BIN = pathlib.Path(sys.executable).parent


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    made = Nodes(tmp_path_factory.mktemp("nodes"), ["node-a", "node-b"], ["node-x"], "s/libdshang[.]so/missing.so/g")
    yield made
    made.close()


def run(arguments, folder, env, status=0):
    done = subprocess.run([DSHANG, "run", *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=END,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done


def told(folder, ranks):
    """What each rank wrote down; every one must have loaded the library, first of what is preloaded."""
    found = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(ranks)]
    for one in found:
        assert LIBRARY in one["loaded"], one
        assert one["environment"]["LD_PRELOAD"].split(":")[0] == LIBRARY, one
    return found


def hostfile(folder, *hosts):
    path = folder / "hosts"
    path.write_text("".join(f"{host} slots=1\n" for host in hosts))
    return str(path)


def deepspeed(folder, runner, *arguments):
    return [str(BIN / "deepspeed"), "--hostfile", hostfile(folder, "node-a", "node-b"), "--launcher", runner, "--master_addr", "127.0.0.1",
            *arguments, SAY, str(folder), "a b"]


def test_deepspeed_over_pdsh(nodes, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / ".deepspeed_env").write_text("USERS_OWN=from home\nDSHANG_STALL_AFTER=5\n")
    (tmp_path / ".deepspeed_env").write_text(f"LD_PRELOAD={SIMULATED}\nUSERS_OTHER=1\n")
    action = 'exec:mail -s "$DSHANG_HANG_CLASS" \\x `me`'
    env = nodes.environment(HOME=str(home), DSHANG_STALL_AFTER="17", DSHANG_MEMORY_HEADROOM="5%", DSHANG_ON_HANG=action,
                            TMPDIR=str(tmp_path))
    before = len(nodes.called())
    run(["--", *deepspeed(tmp_path, "pdsh")], tmp_path, env)
    assert any("node-b" in call and "deepspeed.launcher.launch" in call for call in nodes.called()[before:])
    folders = set()
    for one in told(tmp_path, 2):
        variables = one["environment"]
        assert variables["LD_PRELOAD"] == f"{LIBRARY}:{SIMULATED}" and SIMULATED in one["loaded"]
        assert (variables["USERS_OWN"], variables["USERS_OTHER"]) == ("from home", "1")
        assert (variables["DSHANG_STALL_AFTER"], variables["DSHANG_MEMORY_HEADROOM"]) == ("17", "5%")
        assert variables["DSHANG_ON_HANG"] == action and one["arguments"][-1] == "a b"
        folders.add(variables["DSHANG_DIR"])
    assert len(folders) == 1 and os.path.dirname(folders.pop()) == str(tmp_path)   # one folder for all nodes


def test_deepspeed_over_openmpi(nodes, tmp_path):
    (tmp_path / ".deepspeed_env").write_text(f"LD_PRELOAD={SIMULATED}\nUSERS_OTHER=1\n")
    action = 'exec:mail -s "$DSHANG_HANG_CLASS" \\x'
    env = nodes.environment(HOME=str(tmp_path / "home"), OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                            DSHANG_ON_HANG=action, DSHANG_DIR=str(tmp_path / "out"), TMPDIR=str(tmp_path))
    more = ["--launcher_args", "--mca btl_tcp_if_include lo --mca oob_tcp_if_include lo"]
    before = len(nodes.called())
    run(["--", *deepspeed(tmp_path, "openmpi", *more)], tmp_path, env)
    assert any("node-b" in call and "orted" in call for call in nodes.called()[before:])
    for one in told(tmp_path, 2):
        variables = one["environment"]
        assert variables["LD_PRELOAD"] == f"{LIBRARY}:{SIMULATED}" and variables["USERS_OTHER"] == "1"
        assert (variables["DSHANG_ON_HANG"], variables["DSHANG_DIR"]) == (action, str(tmp_path / "out"))


def test_mpirun_on_other_nodes(nodes, tmp_path):
    env = nodes.environment(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", DSHANG_STALL_AFTER="17", TMPDIR=str(tmp_path))
    run(["--dlsym", "--", "mpirun", "-n", "2", "--hostfile", hostfile(tmp_path, "node-a", "node-b"), "--mca", "btl_tcp_if_include", "lo",
         "--mca", "oob_tcp_if_include", "lo", "-x", f"LD_PRELOAD={SIMULATED}", sys.executable, SAY, str(tmp_path)], tmp_path, env)
    for one in told(tmp_path, 2):
        assert one["environment"]["LD_PRELOAD"] == f"{LIBRARY}:{DLSYM}:{SIMULATED}" and DLSYM in one["loaded"]
        assert one["environment"]["DSHANG_STALL_AFTER"] == "17"


def test_torchrun_and_a_preload_of_the_users(nodes, tmp_path):
    env = nodes.environment(LD_PRELOAD=SIMULATED)
    run(["--", str(BIN / "torchrun"), "--standalone", "--nproc_per_node", "2", SAY, str(tmp_path)], tmp_path, env)
    for one in told(tmp_path, 2):
        assert one["environment"]["LD_PRELOAD"] == f"{LIBRARY}:{SIMULATED}"
        assert "DS_ENV_FILE" not in one["environment"] and "DSHANG_DIR" not in one["environment"]


def test_the_command_takes_the_place_of_the_program(nodes, tmp_path):
    done = run(["--", sys.executable, "-c", "import sys; print(open('/proc/self/maps').read()); sys.exit(7)"], tmp_path, nodes.environment(), 7)
    assert LIBRARY in done.stdout and done.stderr == ""
    done = run(["--", "no-such-program"], tmp_path, nodes.environment(), 127)
    assert done.stderr.splitlines()[-1] == "dshang: run: cannot start no-such-program: No such file or directory"


def test_the_library_is_looked_for_on_every_node(nodes, tmp_path):
    env = nodes.environment()
    command = ["--", "torchrun", "x.py"]
    done = run(["--check", "--show", "--hostfile", hostfile(tmp_path, "node-a", "node-b"), *command], tmp_path, env)
    assert f"dshang: run: {LIBRARY} is the same on 2 nodes of " in done.stderr and "LD_PRELOAD=" + LIBRARY in done.stdout
    done = run(["--check", "--dlsym", "--show", "--hostfile", hostfile(tmp_path, "node-a"), *command], tmp_path, env)
    assert [line.split()[2] for line in done.stderr.splitlines()] == [LIBRARY, DLSYM] and f"LD_PRELOAD={LIBRARY}:{DLSYM}\n" in done.stdout
    done = run(["--check", "--hostfile", hostfile(tmp_path, "node-a", "node-x", "gone"), *command], tmp_path, env, 2)
    lines = done.stderr.splitlines()
    assert lines[0] == f"dshang: run: {LIBRARY} is not on node-x, or cannot be read there"
    assert lines[1].startswith("dshang: run: gone cannot be asked: ") and len(lines) == 2


@pytest.mark.parametrize("content, says", [(None, "is another file on node-x than here"), (b"text", "cannot be loaded on node-x: ERROR: ld.so")])
def test_another_library_on_a_node_is_said(tmp_path, content, says):
    other = tmp_path / "other.so"
    other.write_bytes(pathlib.Path(SIMULATED).read_bytes() if content is None else content)
    made = Nodes(tmp_path, ["node-a"], ["node-x"], f"s#{LIBRARY}#{other}#g")
    try:
        done = run(["--check", "--hostfile", hostfile(tmp_path, "node-a", "node-x"), "--", "true"], tmp_path, made.environment(), 2)
    finally:
        made.close()
    assert done.stderr.splitlines()[-1].startswith(f"dshang: run: {LIBRARY} {says}"), done.stderr


@pytest.mark.parametrize("arguments, says", [
    (["--"], "command is required (dshang run --help)"),
    (["--check", "--", "torchrun", "x.py"], "run: --check: the command names no hostfile; --hostfile FILE says which nodes are meant"),
    (["--check", "--hostfile", "/missing", "--", "torchrun", "x.py"], "/missing: No such file or directory"),
    (["--frob", "--", "true"], "--frob"),
])
def test_a_mistake_gets_one_line_that_helps(nodes, tmp_path, arguments, says):
    done = run(arguments, tmp_path, nodes.environment(), 2)
    assert says in done.stderr and done.stderr.startswith("dshang: ") and done.stderr.count("\n") == 1, done.stderr


def test_a_bad_environment_file_is_said_before_anything_is_started(nodes, tmp_path):
    (tmp_path / ".deepspeed_env").write_text("A=1\n# a comment\n")
    done = run(["--", "deepspeed", "--hostfile", hostfile(tmp_path, "node-a"), "x.py"], tmp_path, nodes.environment(HOME="/"), 2)
    assert done.stderr.startswith(f"dshang: run: {tmp_path}/.deepspeed_env:2 is no NAME=VALUE; DeepSpeed's runner ends")
