"""docs/parameters.md lists what the built files declare."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("TEST_BUILD") or ROOT / "build")


def test_table_is_up_to_date():
    command = [sys.executable, ROOT / "scripts/params_table", "--check", BUILD / "libdshang.so", BUILD / "dshang"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
