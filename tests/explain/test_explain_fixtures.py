"""Every fixture through the command line gives exactly the entries that expected.json names."""
import gzip
import json

import pytest

from explain_cli import HERE, explain, findings

FIXTURES = HERE / "fixtures"
EXPECTED = json.loads((FIXTURES / "expected.json").read_text())


def test_every_fixture_has_its_line():
    assert {f"logs/{file.name}" for file in (FIXTURES / "logs").iterdir()} == set(EXPECTED) and len(EXPECTED) >= 106


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_fixture(name):
    found = findings(FIXTURES / name)
    assert sorted(finding["id"] for finding in found) == sorted(EXPECTED[name]), found


def test_a_cause_stands_before_its_consequence():
    assert [one["id"] for one in findings(FIXTURES / "logs" / "ds_opt_adam.txt")] == ["X-14", "X-03"]


@pytest.mark.parametrize("name", [name for name, expected in EXPECTED.items() if expected][::7])
def test_a_log_is_read_in_any_form(name, tmp_path):
    """CRLF, colours, every launcher's prefix, packed, on standard input: the same."""
    lines = (FIXTURES / name).read_text().split("\n")
    plain = any(line.startswith("[rank") for line in lines)
    forms = {
        "crlf": "\r\n".join(lines), "coloured": "".join(f"\x1b[31m{line}\x1b[0m\n" for line in lines),
        "srun": "".join(f"3: {line}\n" for line in lines), "pdsh": "".join(f"worker-1: {line}\n" for line in lines),
        "mpirun": "".join(f"[1,3]<stderr>:{line}\n" for line in lines), "torchrun": "".join(f"[default3]:{line}\n" for line in lines),
        "collected": "".join(f"2026-11-02T10:00:00.123Z {line}\n" for line in lines), "unended": "\n".join(lines).rstrip("\n"),
    }
    if plain:
        del forms["torchrun"]  # torch's own prefix says more
    for form, text in forms.items():
        found = findings("-", text=text)
        assert sorted(one["id"] for one in found) == sorted(EXPECTED[name]), (form, found)
        if form in ("srun", "mpirun") and not plain:
            assert all("rank 3" in one["where"] for one in found if one["id"] not in ("X-11", "12.9-4", "X-46")), (form, found)
    packed = tmp_path / "log.gz"
    packed.write_bytes(gzip.compress("\n".join(lines).encode()))
    assert sorted(one["id"] for one in findings(packed)) == sorted(EXPECTED[name])


def test_every_text_fits_on_a_screen():
    for name in EXPECTED:
        told = explain(FIXTURES / name)
        lines = told.stdout.splitlines()
        assert len(lines) <= 25 and max(map(len, lines)) <= 140, told.stdout
    everything = explain(*[FIXTURES / name for name in EXPECTED])
    assert len(everything.stdout.splitlines()) <= 25 and "more (--json)" in everything.stdout
