"""Runs the scenarios of this folder, which have the form of tests/scenarios, with the runner there."""
import glob
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
RUN = os.path.join(HERE, "..", "scenarios", "run")
BUILD = os.environ.get("TEST_BUILD") or os.path.join(HERE, "..", "..", "build")
SCENARIOS = sorted(glob.glob(os.path.join(HERE, "[mw][0-9]*.py")))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda path: os.path.basename(path)[:-3])
def test_scenario(scenario):
    done = subprocess.run([sys.executable, RUN, "--build", BUILD, scenario], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_are_scenarios():
    assert len(SCENARIOS) >= 15
