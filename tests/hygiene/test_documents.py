"""What README.md and docs/ name exists, and lists are complete."""
import json
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
BUILD = pathlib.Path(os.environ.get("TEST_BUILD", ROOT / "build"))
README = (ROOT / "README.md").read_text()
SCHEMA = json.loads((ROOT / "docs" / "report.schema.json").read_text())
CLASSES = SCHEMA["$defs"]["finding"]["properties"]["class"]["enum"]
FINDINGS = re.findall(r"^\| `([a-z0-9-]+)` \| (.+) \|$", (ROOT / "docs" / "findings.md").read_text(), re.MULTILINE)


def test_the_list_of_findings_names_exactly_the_classes_of_the_schema():
    assert sorted(name for name, _ in FINDINGS) == sorted(CLASSES)


def test_a_class_that_is_left_for_later_has_no_detector():
    code = "".join(path.read_text() for path in (ROOT / "detectors").glob("*.cpp"))
    there = set(re.findall(r'DSHANG_(?:DETECTOR|EXPLAINER)\(\d+, "([a-z0-9-]+)"', code))
    assert {"module-skipped", "unknown-hang"} <= there
    assert not there & {name for name, text in FINDINGS if text.startswith("*later:*")}


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = [link for link in re.findall(r"\]\(([^)#]+)", page.read_text()) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_page_is_linked_from_the_readme():
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f"(docs/{page.name})" not in README] == []


def test_scripts_in_the_readme_can_be_run():
    scripts = set(re.findall(r"\bscripts/\w+", README))
    assert {"scripts/demo", "scripts/test", "scripts/build"} <= scripts
    assert [name for name in scripts if not os.access(ROOT / name, os.X_OK)] == []


def test_commands_in_the_readme_are_known():
    verbs = set(re.findall(r"\bdshang ([a-z-]+) (?:-|lib|\[?DIR)", README))
    assert {"dry-run", "report", "top", "path"} <= verbs
    for command in [["--params"], ["path", "lib"], *([verb, "--help"] for verb in sorted(verbs))]:
        told = subprocess.run([BUILD / "dshang", *command], capture_output=True, text=True, timeout=60)
        assert told.returncode == 0 and told.stdout, (command, told.stderr)
    preload = subprocess.run([BUILD / "dshang", "path", "lib"], capture_output=True, text=True, timeout=60).stdout.strip()
    assert pathlib.Path(preload).samefile(BUILD / "libdshang.so")


def test_examples_said_to_have_a_mistake_have_one():
    said = re.search(r"\*\*Examples:\*\*(.*?)each has one mistake", README, re.DOTALL)
    names = re.findall(r"\((examples/\w+\.py)\)", said[1])
    assert len(names) >= 3
    assert [name for name in names if "mistake=" not in (ROOT / name).read_text()] == []


def test_the_readme_shows_a_whole_finding():
    shown = re.search(r"^<!-- demo -->\n```\n(.*?)```\n<!-- /demo -->$", README, re.DOTALL | re.MULTILINE)[1].splitlines()
    steps = [line for line in shown if re.match(r"\[rank \d\] step 3 loss", line)]
    assert len(steps) == 2
    assert all(line.startswith("dshang: ") for line in shown if line not in steps)
    heads = [re.match(r"dshang: HANG \[([a-z-]+)\] ", line) for line in shown]
    assert [head[1] for head in heads if head] == ["module-skipped"]
    assert shown[-1].startswith("dshang: full report: ")
