"""Every fixture through the command line gives exactly the rules that expected.json names."""
import json

import pytest

from doctor_cli import HERE, findings, make_checkpoint

FIXTURES = HERE / "fixtures"
EXPECTED = json.loads((FIXTURES / "expected.json").read_text())
CONTEXT = json.loads((FIXTURES / "context.json").read_text())


def arguments_for(name, tmp_path):
    folder, file = name.split("/")[0], FIXTURES / name
    if folder == "configs":
        return [file]
    if folder == "checkpoints":
        return ["--checkpoint", make_checkpoint(tmp_path / "checkpoint", file.read_text().split())]
    return [{"hostfiles": "--hostfile", "env": "--env-file", "models": "--model"}[folder], file]


def test_every_fixture_has_its_line():
    there = {str(file.relative_to(FIXTURES)) for folder in FIXTURES.iterdir() if folder.is_dir() for file in folder.iterdir()}
    assert there == set(EXPECTED) and len(there) >= 90


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_fixture(name, tmp_path):
    found = findings(*arguments_for(name, tmp_path), "--facts", "-", text=json.dumps(CONTEXT.get(name, {})), cwd=FIXTURES)
    assert sorted(finding["id"] for finding in found) == sorted(EXPECTED[name]), found


def test_a_listing_serves_as_a_checkpoint():
    listing = FIXTURES / "checkpoints" / "missing_shard.txt"
    context = json.dumps(CONTEXT["checkpoints/missing_shard.txt"])
    assert [finding["id"] for finding in findings("--checkpoint", listing, "--facts", "-", text=context)] == ["12.7-2"]
