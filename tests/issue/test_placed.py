"""Secrets that are known by their place go, each to the letter, and everything beside them stays."""
import re

import pytest

from issue_cli import Made, programs
from secrets_placed import NEAR, PLACED, all_of, filled

ENDS = "\n\n#-----\n\n"  # keeps the texts apart, in every language


@pytest.fixture(scope="module")
def cleaned(tmp_path_factory):
    """What becomes of each text, all in one report."""
    folder = tmp_path_factory.mktemp("placed")
    texts = [text for _, text in all_of(PLACED) + all_of(NEAR)]
    whole = [filled(text)[0] for _, text in all_of(PLACED)] + [text for _, text in all_of(NEAR)]
    (folder / "ds_config.json").write_text(ENDS.join(whole))
    made = Made("--config", folder / "ds_config.json", cwd=folder, path=programs(folder / "bin", "tar", "zstd"))
    parts = made.files["ds_config.json"].split(ENDS)
    assert len(parts) == len(texts)
    return dict(zip(texts, parts)), made.everything()


@pytest.mark.parametrize("kind, text", all_of(PLACED))
def test_a_secret_goes_and_what_is_beside_it_stays(cleaned, kind, text):
    became, everything = cleaned
    assert re.sub(r"\[redacted: [^]]*\]", "{}", became[text]) == text
    assert [secret for secret in filled(text)[1] if secret in everything] == []


@pytest.mark.parametrize("kind, text", all_of(NEAR))
def test_what_only_looks_like_one_stays(cleaned, kind, text):
    assert cleaned[0][text] == text


def test_each_kind_has_near_misses():
    assert PLACED.keys() == NEAR.keys()
    assert len({text for _, text in all_of(PLACED) + all_of(NEAR)}) == len(all_of(PLACED)) + len(all_of(NEAR))
