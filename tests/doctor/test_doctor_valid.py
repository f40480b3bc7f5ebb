"""Configs as documentation and training frameworks have them: no error is reported, whoever calls initialize."""
import json

import pytest

from doctor_cli import HERE, SAYS_WRONG, findings

VALID = sorted((HERE / "valid").glob("*.json"))


def test_there_are_enough():
    assert len(VALID) >= 15


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_valid(path):
    trainers = ["hf", "unknown"] if path.stem.startswith("hf_") else ["plain", "unknown"]
    for trainer in trainers:
        found = findings(path, "--facts", "-", text=json.dumps({"trainer": trainer}))
        assert [finding for finding in found if finding["severity"] in SAYS_WRONG] == [], trainer
