"""Builds core/rank and core/flight/writer.cpp into one library and runs the programs of this folder under every Python.

TEST_PYTHONS: interpreters (paths, or versions under ~/.pyenv/versions), separated by blanks; default: the CPythons from
3.8 on that are installed there, and the one that runs pytest.
"""
import glob
import json
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
VERSIONS = pathlib.Path.home() / ".pyenv" / "versions"


def known_version(python):
    program = "import sys; print('%s %d %d' % ((sys.implementation.name,) + sys.version_info[:2]))"
    text = subprocess.run([python, "-c", program], capture_output=True, text=True).stdout.split()
    return tuple(map(int, text[1:])) if text[:1] == ["cpython"] else (0, 0)


def pythons():
    named = os.environ.get("TEST_PYTHONS", "").split()
    if not named:
        named = sorted(glob.glob(str(VERSIONS / "3.*" / "bin" / "python3"))) + [sys.executable]
    found = {}
    for name in named:
        path = name if "/" in name else str(VERSIONS / name / "bin" / "python3")
        version = known_version(path)
        if version >= (3, 8):
            found.setdefault(version, path)
    return [found[version] for version in sorted(found)]


PYTHONS = pythons()


def pytest_generate_tests(metafunc):
    if "python" in metafunc.fixturenames:
        ids = ["%d.%d" % known_version(python) for python in PYTHONS]
        metafunc.parametrize("python", PYTHONS, ids=ids, scope="session")


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
