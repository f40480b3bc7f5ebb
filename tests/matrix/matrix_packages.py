"""Other versions of a package beside the tests' virtual environment: each in a folder of its own, put before it."""
import os
import shutil
import subprocess
import sys
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_PIP = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target"]
_ROUNDS = 8                   # requirements of requirements


def installed(folder, wanted):
    """The folder, with the packages of `wanted` and what they need that the environment lacks.  Made once."""
    done = os.path.join(folder, ".complete")
    if os.path.exists(done) and open(done).read().split("\n") == wanted:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    missing = list(wanted)
    for _ in range(_ROUNDS):
        if not missing:
            break
        _install(folder, missing)
        missing = _missing(folder)
    if missing:
        raise RuntimeError("still missing after %d rounds: %s" % (_ROUNDS, " ".join(missing)))
    with open(done, "w") as file:
        file.write("\n".join(wanted))
    return folder


def versions(folder, names):
    """{name: version} as a program would find them."""
    known = _distributions(folder)
    return {name: known[canonicalize_name(name)].version for name in names if canonicalize_name(name) in known}


def _install(folder, wanted):
    done = subprocess.run(_PIP + [folder] + wanted, env=dict(os.environ, DS_BUILD_OPS="0"), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    if done.returncode:
        raise RuntimeError("pip could not install %s:\n%s" % (" ".join(wanted), done.stdout[-2000:]))


def _distributions(folder):
    """{name: distribution}: those of the folder, and those of the environment behind them."""
    known = {}
    for path in ([folder] if folder else []) + sys.path:
        for found in metadata.distributions(path=[path]):
            if found.metadata["Name"]:
                known.setdefault(canonicalize_name(found.metadata["Name"]), found)
    return known


def _missing(folder):
    known = _distributions(folder)
    missing = {}
    for found in metadata.distributions(path=[folder]):
        for text in found.requires or ():
            requirement = Requirement(text)
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
                continue
            there = known.get(canonicalize_name(requirement.name))
            if there is None or not requirement.specifier.contains(there.version, prereleases=True):
                missing[canonicalize_name(requirement.name)] = str(requirement).split(";")[0].strip()
    return sorted(missing.values())
