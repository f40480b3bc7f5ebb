"""What every program is held to that tests or users start as several ranks."""
import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
FOLDERS = ("examples", "tests/e2e/programs", "tests/simgpu/programs")
PROGRAMS = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.py"))]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
def test_lines_stay_whole(program):
    """Ranks share one log, and print() to an unbuffered one writes text and newline one after the other."""
    calls = [node for node in ast.walk(ast.parse(program.read_text())) if isinstance(node, ast.Call)]
    prints = [node.lineno for node in calls if isinstance(node.func, ast.Name) and node.func.id == "print"]
    assert not prints, f"{program}: print() in lines {prints}; write the line with its newline at once"
