"""DSHANG_NVTX=1: real programs with NVIDIA's own NVTX headers, alone and with a second tool.

TEST_BUILD: the build directory (default build/).  The headers are those of the wheel nvidia-nvtx that torch brings, or of
CUDA_HOME.
"""
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("TEST_BUILD", ROOT / "build")).absolute()
SLACK = float(os.environ.get("SCENARIO_SLACK", "2"))
STAND_INS = ROOT / "tests" / "hygiene" / "programs" / "include"    # of CUDA's and NCCL's headers
TOOL = "NVTX_INJECTION64_PATH"
PHASES = {10: "forward", 11: "forward", 12: "backward", 13: "optimizer", 14: None,
          20: None, 21: "forward", 22: "forward", 23: None, 24: "backward", 25: "optimizer"}


def headers():
    patterns = [os.path.join(path, "nvidia", "*", "include") for path in sys.path if path]
    patterns += [os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "include")]
    found = [folder for pattern in patterns for folder in glob.glob(pattern)
             if os.path.exists(os.path.join(folder, "nvtx3", "nvToolsExt.h"))]
    assert found, "no nvtx3/nvToolsExt.h in " + ", ".join(patterns)
    return found[0]


def compiled(program, source, *options):
    compiler = os.environ.get("CXX", "c++") if source.endswith(".cpp") else os.environ.get("CC", "cc")
    subprocess.run([compiler, "-Wall", "-Wextra", "-Werror", "-isystem", headers(), "-o", program, HERE / "programs" / source,
                    *options], check=True)
    return program


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    compiled(folder / "ranges", "ranges.c", f"-I{STAND_INS}", f"-L{BUILD}", "-l:libsimcuda.so", "-ldl")
    compiled(folder / "tool.so", "tool.c", "-shared", "-fPIC")
    return folder


class Ran:
    """The program, run to its end; what it printed, what a tool was told, and the phases of its calls by their counts."""

    def __init__(self, programs, folder, **settings):
        folder.mkdir()
        log = folder / "log"
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(("DSHANG_", "SIMGPU_", "LD_PRELOAD", "NVTX_", "TOOL_"))}
        env.update(LD_PRELOAD=f"{BUILD}/libdshang.so {BUILD}/libsimcuda.so", DSHANG_DIR=str(folder / "out"), SIMGPU_QUIET="1",
                   RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", TOOL_LOG=str(log))
        env.update(settings)
        ended = subprocess.run([programs / "ranges"], env=env, capture_output=True, text=True, timeout=60)
        assert ended.returncode == 0, ended.stderr
        self.said, self.errors = ended.stdout, ended.stderr
        self.told = log.read_text() if log.exists() else ""
        self.folder = folder

    def dump(self):
        end = time.monotonic() + 10 + SLACK
        while not (self.folder / "out" / "report.json").exists():
            assert time.monotonic() < end, "no report"
            time.sleep(0.05)
        return subprocess.run([BUILD / "dshang", "report", "--dump", self.folder / "out"], check=True, capture_output=True,
                              text=True).stdout

    def phases(self):
        found, phase = {}, []
        for line in self.dump().splitlines():
            if match := re.match(r"visit phase_push (\S+)", line):
                phase.append(match[1])
            elif line.startswith("visit phase_pop"):
                phase.pop()
            elif match := re.match(r"call reduce_scatter (\d+)", line):
                assert "phase=" not in line, line         # it is that of the visits before
                found[int(match[1])] = phase[-1] if phase else None
        return found


def test_types_and_numbers_are_those_of_the_headers(tmp_path):
    compiled(tmp_path / "abi", "abi.cpp", "-std=c++20", f"-I{ROOT}")


def test_both_forms_become_phases_and_nothing_else_changes(programs, tmp_path):
    plain = Ran(programs, tmp_path / "plain", DSHANG_DISABLE="1")
    ran = Ran(programs, tmp_path / "with", DSHANG_NVTX="1")
    assert ran.said == plain.said and set(re.findall(r"-?\d+", ran.said)) == {"-2"}
    assert ran.phases() == PHASES
    assert set(Ran(programs, tmp_path / "off").phases().values()) == {None}


def test_a_tool_that_was_named_before_sees_every_call(programs, tmp_path):
    alone = Ran(programs, tmp_path / "alone", **{TOOL: str(programs / "tool.so")})
    both = Ran(programs, tmp_path / "both", DSHANG_NVTX="1", **{TOOL: str(programs / "tool.so")})
    assert alone.told.startswith("initialise\n") and "mark between" in alone.told and "register DeepSpeed allgather_fn" in alone.told
    assert (both.told, both.said) == (alone.told, alone.said)
    assert "push 0\npush 1\npush 2\n" in both.said
    assert both.phases() == PHASES
    assert set(alone.phases().values()) == {None}


@pytest.mark.parametrize("path, more", [("/no/such/tool.so", {}), ("tool.so", {"TOOL_FAILS": "1"})])
def test_a_tool_that_fails_is_left_out(programs, tmp_path, path, more):
    settings = {TOOL: str(programs / path), **more}
    alone = Ran(programs, tmp_path / "alone", **settings)
    both = Ran(programs, tmp_path / "both", DSHANG_NVTX="1", **settings)
    assert (both.told, both.said) == (alone.told, alone.said)
    assert both.phases() == PHASES
    assert f"fact nvtx.next_failed {settings[TOOL]}" in both.dump()


def test_without_its_library_one_line_says_so(programs, tmp_path):
    shutil.copy(BUILD / "libdshang.so", tmp_path / "libdshang.so")
    ran = Ran(programs, tmp_path / "ran", DSHANG_NVTX="1", DSHANG_MONITOR=str(BUILD / "dshang"),
              LD_PRELOAD=f"{tmp_path}/libdshang.so {BUILD}/libsimcuda.so", **{TOOL: str(programs / "tool.so")})
    assert ran.errors.count("DSHANG_NVTX=1 has no effect: libdshang_nvtx.so is not beside libdshang.so\n") == 1, ran.errors
    assert ran.told and set(ran.phases().values()) == {None}


def names_in_a_child(**settings):
    """The two variables as a grandchild sees them."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("DSHANG_", "LD_PRELOAD", "NVTX_"))}
    env.update(LD_PRELOAD=str(BUILD / "libdshang.so"), **settings)
    out = subprocess.run([sys.executable, "-c", "import subprocess; subprocess.run(['env'])"], env=env, check=True,
                         capture_output=True, text=True).stdout
    found = dict(line.split("=", 1) for line in out.splitlines() if "=" in line)
    return found.get(TOOL), found.get("DSHANG_NVTX_NEXT")


def test_children_inherit_both_tools():
    own = str(BUILD / "libdshang_nvtx.so")
    assert names_in_a_child() == (None, None)
    assert names_in_a_child(**{TOOL: "/opt/tool.so"}) == ("/opt/tool.so", None)
    assert names_in_a_child(DSHANG_NVTX="1") == (own, None)
    assert names_in_a_child(DSHANG_NVTX="1", **{TOOL: "/opt/tool.so"}) == (own, "/opt/tool.so")
    # Another copy of dshang's stood there: it is no tool to call.
    assert names_in_a_child(DSHANG_NVTX="1", DSHANG_NVTX_NEXT="/opt/tool.so", **{TOOL: "/old/libdshang_nvtx.so"}) == \
        (own, "/opt/tool.so")
    assert names_in_a_child(DSHANG_NVTX="1", DSHANG_DISABLE="1", **{TOOL: "/opt/tool.so"}) == ("/opt/tool.so", None)


def test_without_the_preload_the_tool_before_is_still_served(programs, tmp_path):
    """A process that dropped the preload and kept the rest of the environment."""
    dropped = Ran(programs, tmp_path / "dropped", LD_PRELOAD=f"{BUILD}/libsimcuda.so", DSHANG_NVTX_NEXT=str(programs / "tool.so"),
                  **{TOOL: str(BUILD / "libdshang_nvtx.so")})
    alone = Ran(programs, tmp_path / "alone", LD_PRELOAD=f"{BUILD}/libsimcuda.so", **{TOOL: str(programs / "tool.so")})
    assert alone.told and (dropped.told, dropped.said) == (alone.told, alone.said)
