"""What the program says to words that it does not know: one line that helps, and status 2."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
BUILD = pathlib.Path(os.environ.get("TEST_BUILD", ROOT / "build"))


def dshang(*arguments, **settings):
    env = {name: value for name, value in os.environ.items() if not name.startswith("DSHANG_")}
    return subprocess.run([BUILD / "dshang", *arguments], env=dict(env, **settings), capture_output=True, text=True, timeout=60)


def test_output_that_cannot_be_written_is_no_success():
    with open("/dev/full", "w") as full:
        done = subprocess.run([BUILD / "dshang", "--params"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and done.stderr == "dshang: standard output cannot be written\n"


@pytest.mark.parametrize("arguments, says", [
    (["dryrun", "-n", "2", "--", "true"], "dryrun is no command; did you mean dry-run?"),
    (["reprot", "x"], "did you mean report?"),
    (["frobnicate"], "frobnicate is no command; there are report, top, path, run, dry-run, monitor, doctor, explain, issue"),
    (["path"], "path: say what; lib is libdshang.so, dlsym libdshang_dlsym.so, include the directory of dshang.h"),
    (["path", "library"], "path: library is not known; lib is libdshang.so"),
    (["dry-run", "-n", "x", "--", "true"], "x is no number of ranks (dshang dry-run --help)"),
    (["dry-run", "-n", "99999999999", "--", "true"], "99999999999 is no number of ranks"),
    (["dry-run", "-n", "65", "--", "true"], "the number of ranks is 65, not 1 to 64"),
    (["report"], "DIR is required (dshang report --help)"),
    (["report", "--frob", "."], "--frob"),
])
def test_a_mistake_gets_one_line_that_helps(arguments, says):
    told = dshang(*arguments)
    assert (told.returncode, told.stdout) == (2, "")
    assert says in told.stderr and told.stderr.startswith("dshang: ") and told.stderr.count("\n") == 1, told.stderr


def test_a_folder_of_jobs_is_answered_with_their_names(tmp_path):
    for name in ("first", "second"):
        (tmp_path / name / "flight").mkdir(parents=True)
    told = dshang("report", str(tmp_path))
    assert told.returncode == 2
    assert told.stderr == f"dshang: {tmp_path} holds no flight files; did you mean one of {tmp_path}/first, {tmp_path}/second?\n"
    for number in range(6):
        (tmp_path / f"third{number}" / "flight").mkdir(parents=True)
    assert "third2, … (8 jobs)?" in dshang("report", str(tmp_path)).stderr


def test_a_folder_of_other_things_is_answered_without_a_guess(tmp_path):
    (tmp_path / "other").mkdir()
    assert dshang("report", str(tmp_path)).stderr == f"dshang: {tmp_path} holds no flight files\n"


WORDS = ["--betas", "[0.9,0.95]", "[]", "[rank0]", "[[1,2],3]", "", "a b", "{}", "-x", "--", "report", "-n", "3", "@f", "a=b", "\\", "'"]


@pytest.mark.parametrize("way", (["run", "--"], ["dry-run", "-n", "1", "--"]))
def test_a_command_is_started_with_the_words_it_was_given(way):
    program = "import json, sys; print(json.dumps(sys.argv[1:]))"
    said = dshang(*way, sys.executable, "-c", program, *WORDS)
    assert json.loads(said.stdout.splitlines()[0]) == WORDS, said


@pytest.mark.parametrize("command", ("explain", "report", "doctor", "issue"))
def test_a_name_in_brackets_is_one_name(command, tmp_path):
    said = subprocess.run([BUILD / "dshang", command, "[a,b]"], cwd=tmp_path, capture_output=True, text=True)
    assert said.returncode == 2 and "[a,b]" in said.stderr, said
