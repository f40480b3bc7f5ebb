"""The probe as libdshang.so carries it, on every Python it may meet (TEST_PYTHONS), with stand-ins for torch and DeepSpeed."""
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHONS = sorted({sys.executable, *os.environ.get("TEST_PYTHONS", "").split()})


@pytest.mark.parametrize("python", PYTHONS)
def test_carried_probe(python):
    done = subprocess.run([python, "-I", os.path.join(HERE, "programs", "carried.py")], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("all checks passed")
