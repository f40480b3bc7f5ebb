"""Builds core/rank and core/flight/writer.cpp into one library and runs the programs of this folder under every Python.

TEST_PYTHONS: see interpreters.py.
"""
import json
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

from interpreters import WALKED, name_of  # noqa: E402


def pytest_generate_tests(metafunc):
    if "python" in metafunc.fixturenames:
        metafunc.parametrize("python", WALKED, ids=map(name_of, WALKED), scope="session")


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """Linked without libstdc++ and with nothing undefined, as libdshang.so has to be."""
    folder = tmp_path_factory.mktemp("library")
    embedded = folder / "embedded.cpp"
    files = [ROOT / "core/rank/bootstrap.py"] + sorted((HERE / "little_probe").glob("*.py"))
    subprocess.run(["cmake", "-DOUT=%s" % embedded, "-DFILES=%s" % ";".join(map(str, files)),
                    "-P", str(ROOT / "core/rank/embed_python.cmake")], check=True)
    sources = sorted(ROOT.glob("core/rank/*.cpp")) + [ROOT / "core/flight/writer.cpp", HERE / "entry.cpp", embedded]
    objects = []
    flags = ["-std=c++20", "-O2", "-g", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti",
             "-fno-threadsafe-statics", "-I", str(ROOT), "-I", str(ROOT / "include")]
    for source in sources:
        objects.append(str(folder / (source.stem + ".o")))
        subprocess.run(["g++"] + flags + ["-c", str(source), "-o", objects[-1]], check=True)
    library = folder / "librank_under_test.so"
    subprocess.run(["gcc", "-shared", "-Wl,-z,defs", "-o", str(library)] + objects, check=True)
    return library


@pytest.fixture(scope="session")
def run(library):
    def run_program(python, name, *arguments, **environment):
        """Runs programs/<name>.py; returns what it printed as JSON on its last line."""
        done = subprocess.run([python, str(HERE / "programs" / (name + ".py")), *arguments],
                              env={**os.environ, "RANK_LIBRARY": str(library), **environment},
                              capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, "%s\n%s" % (done.stdout[-2000:], done.stderr[-4000:])
        result = json.loads(done.stdout.strip().splitlines()[-1])
        if isinstance(result, dict):
            result["stderr"] = done.stderr
        return result
    return run_program
