"""Whole logs of jobs that really failed, on simulated GPUs: the first thing told is the cause.

programs/record_jobs.py makes them again; expected.json says what must be told: an entry's id, or the type of an error that no
entry knows; what must be said of it; and what else may be told, behind it.
"""
import json
import subprocess
import sys

import pytest

from explain_cli import HERE, explain, report

JOBS = HERE / "fixtures" / "jobs"
EXPECTED = json.loads((JOBS / "expected.json").read_text())
UNKNOWN = "unknown"


def test_every_log_has_its_line():
    assert {file.name for file in JOBS.glob("*.log")} == set(EXPECTED) and len(EXPECTED) >= 20


def test_every_log_can_be_made_again():
    names = subprocess.run([sys.executable, HERE / "programs" / "record_jobs.py", "--list"], capture_output=True, text=True, check=True)
    assert {name + ".log" for name in names.stdout.split()} == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_first_cause_of_a_job(name):
    cause, says, *behind = EXPECTED[name]
    told = report(JOBS / name)
    all_told = [finding["id"] for finding in told["findings"]] + [UNKNOWN] * bool(told["unknown"])
    if cause.isidentifier():
        first = told["unknown"][0]
        assert first["summary"].startswith(cause)
        all_told.remove(UNKNOWN)
    else:
        first = told["findings"][0]
        assert all_told.pop(0) == cause
    assert says in first["summary"] + first["where"] and all_told == behind
    lines = explain(JOBS / name).stdout.splitlines()
    head = lines[lines.index("") + 1]
    assert len(lines) <= 25 and (f"[{cause}]" in head or cause in head)
