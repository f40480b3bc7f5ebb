"""Runs `dshang issue` as a user does.  TEST_BUILD: the build directory (default build/)."""
import io
import os
import pathlib
import subprocess
import sys
import tarfile
import time

ROOT = pathlib.Path(__file__).parent.parent.parent
BUILD = pathlib.Path(os.environ.get("TEST_BUILD", ROOT / "build")).absolute()
HERE = pathlib.Path(__file__).parent
PROGRAMS = ("tar", "zstd", "gzip")


def programs(folder, *names):
    """A PATH with these programs alone, so that tests depend on none that happens to be installed."""
    folder.mkdir(exist_ok=True)
    for name in names:
        found = next((pathlib.Path(place) / name for place in os.defpath.split(":") if (pathlib.Path(place) / name).exists()), None)
        assert found, f"{name} is not installed"
        if not (folder / name).exists():
            (folder / name).symlink_to(found)
    return folder


def script(folder, name, text):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n" + text)
    (folder / name).chmod(0o755)


def issue(*arguments, cwd, path, **variables):
    env = {"PATH": str(path), "HOME": str(cwd), **variables}
    return subprocess.run([BUILD / "dshang", "issue", *map(str, arguments)], cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=120)


class Made:
    """What `dshang issue` left."""

    def __init__(self, *arguments, cwd, path, status=0, **variables):
        told = issue("--output", cwd / "bug", *arguments, cwd=cwd, path=path, **variables)
        assert told.returncode == status, (told.returncode, told.stdout, told.stderr)
        self.said, self.complained = told.stdout, told.stderr
        self.markdown = (cwd / "bug.md").read_text()
        self.files = unpacked(cwd / "bug.tar.zst") if (cwd / "bug.tar.zst").exists() else {}

    def everything(self):
        return "\n".join([self.markdown, self.said, self.complained, *self.files.values()])


def unpacked(path):
    raw = subprocess.run(["/usr/bin/zstd", "-dcq", path], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        members = [one for one in archive.getmembers() if one.isfile()]
        assert all(one.mode == 0o600 and not one.name.startswith(("/", "..")) for one in members)
        return {one.name.split("/", 1)[1]: archive.extractfile(one).read().decode() for one in members}


def section(markdown, title):
    """The text below a heading."""
    lines = markdown.splitlines()
    at = lines.index("## " + title) + 1
    end = next((n for n in range(at, len(lines)) if lines[n].startswith("## ")), len(lines))
    return "\n".join(lines[at:end])


def record(folder, **variables):
    """A job of one rank on the simulated GPU, recorded by dshang; its directory."""
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder), "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1",
           "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29777", "DSHANG_DIR": str(folder / "job"),
           "LD_PRELOAD": f"{BUILD}/libdshang.so {BUILD}/libsimcuda.so", **variables}
    subprocess.run([sys.executable, HERE / "programs" / "recorded.py"], env=env, cwd=folder, capture_output=True, timeout=60)
    until = time.monotonic() + 30
    while list((folder / "job").glob("flight/spool.*")) or not (folder / "job" / "report.json").exists():
        assert time.monotonic() < until, "the monitor did not finish its files"
        time.sleep(0.05)
    return folder / "job"
