"""Every kind of secret goes, and what only looks like one stays."""
import json

import pytest

from issue_cli import Made, programs
from secrets_made import BY_FORM, IN_CONTEXT, MUST_STAY, RANDOM

AROUND = ("see {} there", 'x = "{}"', "({})", "value: {}.", "u={}&b=1", "[{}, 2]")


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """One report with all of them in it, as lines of a configuration, which is put in whole."""
    folder = tmp_path_factory.mktemp("redaction")
    texts = [around.format(secret) for secret in BY_FORM.values() for around in AROUND]
    texts += [text for text, _ in IN_CONTEXT.values()]
    (folder / "ds_config.json").write_text("\n".join(texts + MUST_STAY) + "\n")
    return Made("--config", folder / "ds_config.json", cwd=folder, path=programs(folder / "bin", "tar", "zstd"))


def parts_of(secret):
    """What may not be seen of it: it whole, and its halves where they are long enough to tell."""
    secret = secret.replace("\n", "")
    half = len(secret) // 2
    return [secret] + [part for part in (secret[:half], secret[half:]) if len(part) >= 12]


def test_there_are_many_kinds():
    assert len(BY_FORM) + len(IN_CONTEXT) >= 100 and len(MUST_STAY) >= 60


@pytest.mark.parametrize("name", BY_FORM)
def test_a_secret_that_is_known_by_its_form_goes(everything, name):
    secret = BY_FORM[name]
    assert [part for part in parts_of(secret) if part in everything.everything()] == []


@pytest.mark.parametrize("name", IN_CONTEXT)
def test_a_secret_that_is_known_by_what_is_around_it_goes(everything, name):
    _, secret = IN_CONTEXT[name]
    lines = secret.splitlines()
    assert [part for line in lines for part in parts_of(line) if part in everything.everything()] == []


@pytest.mark.parametrize("text", MUST_STAY)
def test_what_is_no_secret_stays(everything, text):
    assert text in everything.files["ds_config.json"]


def test_what_was_redacted_is_listed_with_kind_place_and_number(everything):
    table = everything.markdown.split("## Redacted")[1]
    github = next(line for line in table.splitlines() if line.startswith("| GitHub token |"))
    assert github == f"| GitHub token | ds_config | {6 * len(AROUND) + 1} |"
    assert "redacted: GitHub token, 37 in ds_config" in everything.said
    assert len([line for line in table.splitlines() if "| ds_config |" in line]) > 40


@pytest.mark.parametrize("words, secret", [
    (["deepspeed", "--num_gpus", "2", "train.py", "--hub_token", "abc123def456"], "abc123def456"),
    (["env", "MY_PASSWORD=correct horse", "torchrun", "train.py"], "correct horse"),
    (["torchrun", "train.py", "--password", "correct horse battery"], "correct horse battery"),
])
def test_secrets_of_the_launch_line_go(tmp_path, words, secret):
    made = Made("--", *words, cwd=tmp_path, path=programs(tmp_path / "bin", "tar", "zstd"))
    assert secret not in made.everything() and "train.py" in made.markdown and "by its name" in made.markdown


def test_a_secret_of_the_environment_is_known_where_it_stands_alone(tmp_path):
    (tmp_path / "ds_config.json").write_text(json.dumps({"train_batch_size": 8, "note": f"see {RANDOM} and GPU-5a1b2c3d"}))
    made = Made("--config", "ds_config.json", cwd=tmp_path, path=programs(tmp_path / "bin", "tar", "zstd"),
                SOME_SERVICE_SECRET=RANDOM, HF_TOKEN="not-in-the-usual-form", NCCL_DEBUG="INFO")
    assert RANDOM not in made.everything() and "not-in-the-usual-form" not in made.everything()
    assert "GPU-5a1b2c3d" in made.markdown
    assert "NCCL_DEBUG=INFO" in made.files["environment.txt"]
    assert "HF_TOKEN=[redacted: token by its name]" in made.files["environment.txt"]
    assert "SOME_SERVICE_SECRET" not in made.everything()


def test_a_cleaned_configuration_is_still_one(tmp_path):
    config = {"train_batch_size": 8, "comet": {"api_key": "c0metS3cret"}, "wandb": {"enabled": True, "team": "x"}}
    (tmp_path / "ds_config.json").write_text(json.dumps(config))
    made = Made("--config", "ds_config.json", cwd=tmp_path, path=programs(tmp_path / "bin", "tar", "zstd"))
    config["comet"]["api_key"] = "[redacted: key by its name]"
    assert json.loads(made.files["ds_config.json"]) == config
