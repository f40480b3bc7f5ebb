"""Whole logs of jobs that really failed, on simulated GPUs (programs/failing_job.py): the first thing told is the cause."""
import json

import pytest

from explain_cli import HERE, explain, report

JOBS = HERE / "fixtures" / "jobs"
EXPECTED = json.loads((JOBS / "expected.json").read_text())


def test_every_log_has_its_line():
    assert {file.name for file in JOBS.glob("*.log")} == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_first_cause_of_a_job(name):
    """An entry's id, or the text of an error that is not known, and what must be said of it."""
    cause, says = EXPECTED[name]
    told = report(JOBS / name)
    if cause.isidentifier():
        assert told["unknown"][0]["summary"].startswith(cause) and says in told["unknown"][0]["where"]
        assert told["findings"] == []
    else:
        assert told["findings"][0]["id"] == cause and says in told["findings"][0]["summary"] + told["findings"][0]["where"]
        assert told["unknown"] == []
    lines = explain(JOBS / name).stdout.splitlines()
    head = lines[lines.index("") + 1]
    assert len(lines) <= 25 and (f"[{cause}]" in head or cause in head)
