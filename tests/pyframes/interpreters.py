"""The CPythons that are tested: TEST_PYTHONS (paths, or versions under ~/.pyenv/versions, separated by blanks); default those
from 3.8 on that are installed there, and the one that runs pytest."""
import glob
import os
import pathlib
import subprocess
import sys

VERSIONS = pathlib.Path.home() / ".pyenv" / "versions"


def known_version(python):
    """Major, minor, 1 for a free-threaded build."""
    program = ("import sys, sysconfig; print(sys.implementation.name, *sys.version_info[:2], "
               "sysconfig.get_config_var('Py_GIL_DISABLED') or 0)")
    text = subprocess.run([python, "-c", program], capture_output=True, text=True).stdout.split()
    return tuple(map(int, text[1:])) if text[:1] == ["cpython"] else (0, 0, 0)


def is_free_threaded(python):
    return known_version(python)[2] == 1


def name_of(python):
    """As 3.12 and, free-threaded, 3.13t."""
    return "%d.%d" % known_version(python)[:2] + "t" * is_free_threaded(python)


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
WALKED = [python for python in PYTHONS if not is_free_threaded(python)]     # whose frames are read
