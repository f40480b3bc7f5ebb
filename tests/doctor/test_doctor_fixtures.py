"""Every fixture through the command line gives exactly the rules that expected.json names."""
import json
import subprocess

import pytest

from doctor_cli import HERE, doctor, findings, make_checkpoint

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


LISTINGS = ["find . -type f", "find . -type f | sed s,^./,,", "ls -R", "ls -lR", "ls -lRh --time-style=long-iso", "cd ..; find checkpoint", "cd ..; ls -R checkpoint",
            "find $PWD -type f", "cd ..; ls -alR $PWD/checkpoint"]
TWO_RANKS = ["latest=step1", "step1/mp_rank_00_model_states.pt", "step1/zero_pp_rank_0_mp_rank_00_optim_states.pt",
             "step1/zero_pp_rank_1_mp_rank_00_optim_states.pt", "zero_to_fp32.py"]


@pytest.mark.parametrize("command", LISTINGS)
def test_a_listing_by_find_or_ls_tells_the_same(command, tmp_path):
    def ids(files):
        folder = make_checkpoint(tmp_path / "checkpoint", files)
        listing = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, check=True).stdout
        subprocess.run(["rm", "-r", folder], check=True)
        (tmp_path / "list").write_text(listing)
        return [finding["id"] for finding in findings("--checkpoint", tmp_path / "list", "--facts", "-", text='{"world_size": 2}')]
    assert ids(TWO_RANKS) == []
    assert ids(TWO_RANKS[:2] + TWO_RANKS[3:]) == ["12.7-2"]
    assert ids(TWO_RANKS[1:]) == ["12.7-3"]
    assert ids([*TWO_RANKS, "step2/mp_rank_00_model_states.pt"]) == []     # which of the two is latest's is not told


def test_what_a_listing_does_not_tell_is_not_checked(tmp_path):
    (tmp_path / "list").write_text("./latest\n./a/mp_rank_00_model_states.pt\n./b/mp_rank_00_model_states.pt\n")
    told = doctor("--checkpoint", tmp_path / "list", "--facts", "-", "--json", text="{}")
    assert "add a line latest=TAG" in json.loads(told.stdout)["not_checked"][0]


def test_the_folder_of_a_trainer_leads_to_its_last_checkpoint(tmp_path):
    shards = [f"checkpoint-{step}/{name}" for step in (90, 500)
              for name in (f"latest=global_step{step}", f"global_step{step}/mp_rank_00_model_states.pt")]
    folder = make_checkpoint(tmp_path / "out", ["config.json", *shards])
    found = findings("--checkpoint", folder, "--facts", "-", text="{}")
    assert [(one["id"], one["severity"]) for one in found] == [("12.7-3", "info")] and "checkpoint-500" in found[0]["summary"]
    assert findings("--checkpoint", folder / "checkpoint-500", "--facts", "-", text='{"world_size": 1}') == []
    empty = make_checkpoint(tmp_path / "none", ["checkpoint-500/latest=global_step500"])
    assert [one["severity"] for one in findings("--checkpoint", empty, "--facts", "-", text="{}")] == ["error"]
