"""docs/coverage.md: every row of the handbook is there, and what it names exists."""
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
BUILD = pathlib.Path(os.environ.get("TEST_BUILD", ROOT / "build"))
DATA = json.loads((ROOT / "docs" / "coverage.json").read_text())
ROWS = {row["row"]: row for row in DATA["rows"]}
# Rows of each table of the handbook.
HANDBOOK = {"12.1": 5, "12.2": 4, "12.3": 6, "12.4": 5, "12.5": 5, "12.6": 5, "12.7": 5, "12.8": 3, "12.9": 6, "12.10": 8,
            "12.11": 4, "12.12": 4, "12.13": 4}
WAYS = ("doctor", "explain", "live", "issue")


LISTS = {"doctor": "rules", "explain": "entries"}


def ids(verb):
    told = subprocess.run([BUILD / "dshang", verb, "--" + LISTS[verb], "--json"], capture_output=True, text=True, timeout=60)
    assert told.returncode == 0, told.stderr
    return {rule["id"] for rule in json.loads(told.stdout)[LISTS[verb]]}


def named(way):
    return {name for row in DATA["rows"] for name in row.get(way, [])}


def test_every_row_of_the_handbook_is_there():
    rows = [f"{table}-{number}" for table, count in HANDBOOK.items() for number in range(1, count + 1)]
    assert [row["row"] for row in DATA["rows"]] == rows
    assert {name: table["rows"] for name, table in DATA["tables"].items()} == HANDBOOK


@pytest.mark.parametrize("row", ROWS)
def test_a_row_is_covered_or_says_that_it_is_not(row):
    covered = any(ROWS[row].get(way) for way in WAYS)
    assert covered != bool(ROWS[row].get("nothing"))
    assert set(ROWS[row]) <= {"row", "symptom", "note", "nothing", *WAYS}


@pytest.mark.parametrize("verb", LISTS)
def test_rules_that_it_names_exist(verb):
    assert named(verb) - ids(verb) == set()


@pytest.mark.parametrize("verb", LISTS)
def test_rules_with_a_row_s_own_number_are_named_in_it(verb):
    own = {name for name in ids(verb) if name in ROWS}
    assert [name for name in sorted(own) if name not in ROWS[name].get(verb, [])] == []


def test_live_classes_that_it_names_have_golden_cases():
    schema = json.loads((ROOT / "docs" / "report.schema.json").read_text())
    classes = set(schema["$defs"]["finding"]["properties"]["class"]["enum"])
    assert named("live") <= classes
    assert [name for name in named("live") if not list((ROOT / "tests" / "golden" / name).glob("*.report"))] == []


def test_parts_of_the_bug_report_that_it_names_exist_and_are_tested():
    code = "".join(path.read_text() for path in (ROOT / "issue").glob("*.cpp"))
    titles = set(re.findall(r'\{\s*"([A-Za-z_][^"]*)",', code))
    assert named("issue") <= titles, named("issue") - titles
    tests = (ROOT / "tests" / "issue" / "test_bundle.py").read_text()
    assert [name for name in named("issue") if f'"{name}"' not in tests] == []


def test_the_page_is_up_to_date():
    told = subprocess.run([sys.executable, ROOT / "scripts" / "coverage_table", "--check"], capture_output=True, text=True, timeout=60)
    assert told.returncode == 0, told.stderr
