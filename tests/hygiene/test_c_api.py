"""examples/annotated.c, compiled as its first lines say: with dshang, without, and with a mistake; and what is installed.

TEST_BUILD: the build directory (default build/).
"""
import json
import os
import pathlib
import re
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
BUILD = pathlib.Path(os.environ.get("TEST_BUILD", ROOT / "build")).absolute()
HEADERS = pathlib.Path(__file__).parent / "programs" / "include"
SLACK = float(os.environ.get("SCENARIO_SLACK", "2"))


def told(program, *arguments):
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def annotated(tmp_path_factory):
    program = tmp_path_factory.mktemp("annotated") / "annotated"
    include = told(BUILD / "dshang", "path", "include")
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-Werror", "-fPIE", "-pie",
                    f"-I{include}", f"-I{HEADERS}", "-o", program, ROOT / "examples" / "annotated.c",
                    f"-L{BUILD}", "-l:libsimcuda.so"], check=True)
    return program


class Ranks:
    """Two ranks of the program; those that still run are ended."""

    def __init__(self, program, folder, *arguments, preload=("libdshang.so", "libsimcuda.so")):
        self.out = folder / "out"
        env = {name: value for name, value in os.environ.items() if not name.startswith(("DSHANG_", "SIMGPU_", "LD_PRELOAD"))}
        env.update(LD_PRELOAD=" ".join(str(BUILD / name) for name in preload), WORLD_SIZE="2", ID_FILE=str(folder / "id"),
                   DSHANG_DIR=str(self.out), SIMGPU_QUIET="1", MASTER_PORT=str(os.getpid()))
        self.started = [subprocess.Popen([program, *arguments], env=dict(env, RANK=str(rank), LOCAL_RANK=str(rank)), text=True,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE) for rank in range(2)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for rank in self.started:
            rank.kill()
            rank.communicate()

    def end(self):
        """(status, what it printed) of each."""
        said = [rank.communicate(timeout=60) for rank in self.started]
        return [(rank.returncode, out) for rank, (out, _) in zip(self.started, said)]

    def report(self):
        try:
            return json.loads((self.out / "report.json").read_text())
        except FileNotFoundError:
            return {"findings": [], "verdict": None}

    def wait(self, condition, seconds=30):
        end = time.monotonic() + seconds + SLACK
        while not condition():
            assert time.monotonic() < end, self.report()
            time.sleep(0.1)


def test_without_the_preload_the_functions_are_null(annotated, tmp_path):
    with Ranks(annotated, tmp_path, preload=("libsimcuda.so",)) as ranks:
        assert ranks.end() == [(0, f"rank {rank}: 5 steps, without dshang\n") for rank in range(2)]
    assert not ranks.out.exists()


def test_steps_phases_modules_and_notes_are_recorded(annotated, tmp_path):
    with Ranks(annotated, tmp_path) as ranks:
        assert ranks.end() == [(0, f"rank {rank}: 5 steps, with dshang\n") for rank in range(2)]
        ranks.wait(lambda: ranks.report()["verdict"] == "healthy")
    dump = told(BUILD / "dshang", "report", "--dump", ranks.out)
    one = re.split(r"^rank ", dump, flags=re.M)[1]
    visits = [re.sub(r" (at|thread|calls_before)=\S+", "", line) for line in re.findall(r"^visit (.*)", one, re.M)]
    modules = [what for layer in range(3) for what in (f"module_enter layers.{layer}", "module_exit")]
    step = ["phase_push forward", *modules, "phase_pop", "phase_push backward", "phase_pop"]
    assert visits == [what for n in range(5) for what in (f"step {n}", *step)]
    assert re.search(r"^fact dataset_length 4096\b", one, re.M)
    # A dump leaves out of a call what follows from the visits before it: step, phase and module fit.
    calls = re.findall(r"^call (?:all_gather|reduce_scatter) .*", one, re.M)
    assert len(calls) == 20 and not [call for call in calls if re.search(r" (step|phase|module)=", call)]


def test_a_finding_names_them(annotated, tmp_path):
    with Ranks(annotated, tmp_path, "--mistake") as ranks:
        ranks.wait(lambda: ranks.report()["findings"])
        finding = ranks.report()["findings"][0]
        assert (finding["class"], finding["severity"], finding["step"]) == ("module-skipped", "hang", 3), finding
        assert "layers.1" in finding["summary"], finding
        sides = {side["ranks"][0]: (side["op"], side["step"], side["phase"], side["module"]) for side in finding["sides"]}
        assert sides == {0: ("all_gather", 3, "forward", "layers.2"), 1: ("reduce_scatter", 3, "backward", None)}, finding


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    prefix = tmp_path_factory.mktemp("installed") / "usr"
    subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
    return prefix


def test_an_installation_finds_its_parts(installed):
    program = installed / "bin" / "dshang"
    assert told(program, "path", "include") == str(installed / "include")
    assert (installed / "include" / "dshang.h").read_text() == (ROOT / "include" / "dshang.h").read_text()
    library = pathlib.Path(told(program, "path", "lib"))
    assert library.is_relative_to(installed) and (library.parent / "dshang").is_file()
    env = dict(os.environ, LD_PRELOAD=str(library))
    assert subprocess.run(["true"], env=env, capture_output=True).stderr == b""
    ended = subprocess.run([program, "dry-run", "-n", "2", "--", "true"], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr


def test_an_installation_is_found_by_cmake(installed, tmp_path):
    """find_package() of a project: the program runs with the library that it names, and without."""
    project, made = pathlib.Path(__file__).parent / "programs" / "installed", tmp_path / "made"
    subprocess.run(["cmake", "-S", project, "-B", made, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={installed}", f"-DHEADERS={HEADERS}",
                    f"-DPROGRAM={ROOT / 'examples' / 'annotated.c'}", f"-DLIBRARY={BUILD / 'libsimcuda.so'}"], check=True)
    subprocess.run(["cmake", "--build", made], check=True)
    preload = (made / "preload").read_text()
    assert pathlib.Path(preload) == installed / "lib" / "dshang" / "libdshang.so"
    for libraries, how in ((preload, "libsimcuda.so"), "with"), (("libsimcuda.so",), "without"):
        (tmp_path / how).mkdir()
        with Ranks(made / "annotated", tmp_path / how, preload=libraries) as ranks:
            assert ranks.end() == [(0, f"rank {rank}: 5 steps, {how} dshang\n") for rank in range(2)]
