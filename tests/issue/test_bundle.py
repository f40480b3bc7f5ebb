"""The bundle: what is in it, who may read it, and what happens where things are missing."""
import os
import re
import stat
import subprocess
import sys
import time

import pytest

from issue_cli import BUILD, Made, issue, programs, record, script, section, unpacked

PLANTED = "s3cr3t" + "Valu3OfThisTest"


@pytest.fixture
def tools(tmp_path):
    return programs(tmp_path / "bin", "tar", "zstd")


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    return record(tmp_path_factory.mktemp("job"), PLANTED=PLANTED, WANDB_API_KEY=PLANTED, NCCL_DEBUG="WARN")


def test_a_recorded_job_is_told_whole(job, tmp_path, tools):
    made = Made(job, cwd=tmp_path, path=tools, WANDB_API_KEY=PLANTED)
    text = made.markdown
    assert "DeepSpeed 0.19.8; torch 2.14.1" in text
    assert "[rank-dead]" in section(text, "What dshang found")
    assert "Ranks: 1, nodes: 1" in section(text, "How it was started")
    assert '"stage": 3' in section(text, "ds_config") and "As DeepSpeed's engine got it" in section(text, "ds_config")
    assert "rank 0, step 7: RuntimeError: the server refused [redacted" in section(text, "Exceptions")
    arguments = section(text, "TrainingArguments")
    assert '"learning_rate": 3e-05' in arguments and "x" * 3000 in arguments and '"hub_token": "[redacted' in arguments
    assert "NCCL_DEBUG=WARN" in section(text, "Environment") and "first rank" in section(text, "Environment")
    assert '"class": "rank-dead"' in made.files["report.json"]
    assert {"issue.md", "report.txt", "report.json", "ds_config.json", "system.txt", "environment.txt"} <= set(made.files)
    assert PLANTED not in made.everything()


def test_the_newest_job_of_the_directory_is_taken(job, tmp_path, tools):
    (tmp_path / "dshang-0123-1").symlink_to(job)
    assert "from `./dshang-0123-1`" in Made(cwd=tmp_path, path=tools).markdown


def test_dshang_dir_is_taken_before_it(job, tmp_path, tools):
    assert f"from `{job}`" in Made(cwd=tmp_path, path=tools, DSHANG_DIR=str(job)).markdown


def test_without_a_job_the_rest_is_told(tmp_path, tools):
    made = Made(cwd=tmp_path, path=tools)
    assert "dshang's report: no job is named" in section(made.markdown, "Not in this report")
    assert re.search(r"^uname: Linux ", section(made.markdown, "System"), re.M)


def test_what_is_not_installed_is_said_and_the_bundle_is_made(tmp_path, tools):
    missing = section(Made(cwd=tmp_path, path=tools).markdown, "Not in this report")
    for what in ("python", "nvidia-smi", "nvidia-smi topo -m", "ds_report"):
        assert f"* {what}: it is not installed here" in missing


def test_the_words_of_the_tools_are_in_it(tmp_path, tools):
    script(tools, "nvidia-smi", 'case "$1" in topo) echo "GPU0 X NV18";; "") echo "Driver Version: 575.1";; esac\n')
    script(tools, "python", 'case "$2" in deepspeed.env_report) printf "\\033[92mcpu_adam ... [NO] ... [OKAY]\\033[0m\\n";;'
                            ' *) echo "torch 2.14.1";; esac\n')
    made = Made(cwd=tmp_path, path=tools)
    assert "575.1" in section(made.markdown, "nvidia-smi") and "NV18" in section(made.markdown, "Topology (nvidia-smi topo -m)")
    assert "\ncpu_adam ... [NO] ... [OKAY]\n" in section(made.markdown, "ds_report")
    assert "torch 2.14.1" in section(made.markdown, "Versions")


def test_a_tool_that_fails_or_hangs_is_said_with_its_last_line(tmp_path, tools):
    script(tools, "nvidia-smi", 'if [ "$1" = topo ]; then exec /bin/sleep 60; fi; echo "driver mismatch"; exit 9\n')
    missing = section(Made(cwd=tmp_path, path=tools).markdown, "Not in this report")
    assert "* nvidia-smi: it ended with status 9: driver mismatch" in missing
    assert "* nvidia-smi topo -m: no answer within 10 s" in missing


def test_the_words_of_a_tool_that_fails_are_cleaned_too(tmp_path, tools):
    script(tools, "nvidia-smi", f'echo "no licence for token={PLANTED}01"; exit 1\n')
    made = Made(cwd=tmp_path, path=tools)
    assert "status 1: no licence for token=[redacted" in made.said and PLANTED not in made.everything()


def test_versions_come_from_the_interpreter_of_the_launch_line(tmp_path, tools):
    script(tmp_path / "env", "python", f'[ "$1" = -c ] || exit 3\nexec {sys.executable} -c "$2"\n')
    versions = section(Made("--", tmp_path / "env" / "python", "train.py", cwd=tmp_path, path=tools).markdown, "Versions")
    assert f"python {sys.version.split()[0]}" in versions


@pytest.mark.parametrize("absent", ["tar", "zstd"])
def test_without_tar_or_zstd_the_files_lie_in_a_folder(tmp_path, absent):
    tools = programs(tmp_path / "bin", *{"tar", "zstd"} - {absent})
    made = Made(cwd=tmp_path, path=tools, status=1)
    assert made.complained == f"dshang: issue: no archive: {absent} is not installed; its files lie in {tmp_path}/bug/\n"
    assert (tmp_path / "bug" / "issue.md").read_text() == made.markdown


@pytest.mark.parametrize("name", ["-x", "host:bug", "--checkpoint-action=exec=touch made", "a b'c"])
def test_a_name_is_no_option_of_tar_and_no_host(tmp_path, tools, name):
    told = issue(f"--output={name}", cwd=tmp_path, path=tools)
    assert told.returncode == 0, told
    assert sorted(path.name for path in tmp_path.iterdir() if path != tools) == sorted([f"{name}.md", f"{name}.tar.zst"])
    assert "issue.md" in unpacked(tmp_path / f"{name}.tar.zst")


def test_files_are_for_their_owner_alone(job, tmp_path, tools):
    Made(job, cwd=tmp_path, path=tools)
    assert {stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in ("bug.md", "bug.tar.zst")} == {0o600}
    assert not (tmp_path / "bug").exists()


@pytest.mark.parametrize("lines, shown", [(50, True), (51, False)])
def test_a_short_script_is_put_in_and_a_long_one_named(tmp_path, tools, lines, shown):
    (tmp_path / "train.py").write_text("import deepspeed\n" + "x = 1\n" * (lines - 1))
    text = section(Made("--", "deepspeed", "--num_gpus", "4", "train.py", cwd=tmp_path, path=tools).markdown, "Script")
    assert ("import deepspeed" in text) == shown
    assert shown or f"`train.py`, {lines} lines" in text


def test_the_launch_line_is_quoted_and_tells_the_ranks(tmp_path, tools):
    made = Made("--", "deepspeed", "--num_gpus", "4", "train.py", "--name", "a b", cwd=tmp_path, path=tools)
    started = section(made.markdown, "How it was started")
    assert "deepspeed --num_gpus 4 train.py --name 'a b'" in started and "Ranks: 4" in started


def test_tracebacks_of_a_log_are_told_once_and_in_order(tmp_path, tools):
    block = ['Traceback (most recent call last):', '  File "train.py", line 3, in <module>', '    main()', 'RuntimeError: first {}']
    lines = ["starting"] + [f"[rank{r}]: {line.format('x')}" for line in block for r in (0, 1)]
    lines += [line.format("second") for line in block] + ["\x1b[31mmore of it\x1b[0m", "", "done"]
    (tmp_path / "log").write_text("\n".join(lines) + "\n")
    text = section(Made("--log", "log", cwd=tmp_path, path=tools).markdown, "Tracebacks")
    assert text.count("Traceback (most") == 2 and text.index("first x") < text.index("first second")
    assert "[rank0]:\nTraceback" in text and "(2 times)" in text
    assert "first second\nmore of it\n" in text and "done" not in text


def test_a_long_section_is_cut_in_the_markdown_and_whole_in_the_archive(tmp_path, tools):
    values = ", ".join(f'"_key{n}": {n}' for n in range(9000))
    (tmp_path / "ds_config.json").write_text('{"train_batch_size": 8,\n' + values.replace(", ", ",\n") + "}\n")
    made = Made("--config", "ds_config.json", cwd=tmp_path, path=tools)
    assert len(made.markdown) < 65536 and "ds_config.json in the archive" in made.markdown
    assert '"_key8999": 8999' in made.files["ds_config.json"]


def test_text_cannot_leave_its_block(tmp_path, tools):
    (tmp_path / "ds_config.json").write_text('{"train_batch_size": 8,\n# ```\n# ## Heading\n}\n')
    made = Made("--config", "ds_config.json", cwd=tmp_path, path=tools)
    assert "````json" in made.markdown


def test_what_the_doctor_says_is_in_it(tmp_path, tools):
    (tmp_path / "ds_config.json").write_text('{"train_batch_size": 8, "bf16": {"enabled": true}, "fp16": {"enabled": true}}')
    assert "12.3-2" in section(Made("--config", "ds_config.json", cwd=tmp_path, path=tools).markdown, "What dshang doctor says")


@pytest.mark.parametrize("arguments, says", [
    (["no_such_dir"], "no_such_dir is no directory"),
    (["."], ". holds no flight files"),
    (["a", "b"], "issue: more than one directory is named: a, b"),
    (["--config", "none.json"], "none.json: No such file or directory"),
    (["--log", "none.log"], "none.log: No such file or directory"),
    (["--output", "there"], "issue: there.md exists already; choose another --output"),
    (["--output", "no/such/x"], "issue: no/such is no directory"),
    (["--frob"], "--frob"),
])
def test_a_mistake_gets_one_line_that_helps_and_leaves_no_file(tmp_path, arguments, says):
    (tmp_path / "there.md").write_text("mine")
    told = issue(*arguments, cwd=tmp_path, path=tmp_path)
    assert (told.returncode, told.stdout) == (2, "")
    assert says in told.stderr and told.stderr.startswith("dshang: ") and told.stderr.count("\n") == 1, told.stderr
    assert os.listdir(tmp_path) == ["there.md"] and (tmp_path / "there.md").read_text() == "mine"


def start(cwd, path, *arguments):
    return subprocess.Popen([BUILD / "dshang", "issue", *arguments], cwd=cwd, env={"PATH": str(path), "HOME": str(cwd)},
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(running):
    told = [(one.communicate(timeout=120), one.returncode) for one in running]
    return [code for _, code in told], [out for (out, _), _ in told], [err for (_, err), _ in told]


def test_reports_made_at_once_have_files_of_their_own(tmp_path, tools):
    folder = tmp_path / "reports"
    folder.mkdir()
    codes, said, complained = ended([start(folder, tools) for _ in range(6)])
    assert codes == [0] * 6, complained
    names = sorted(out.split(".md: to be pasted")[0] for out in said)
    assert len(set(names)) == 6
    assert sorted(os.listdir(folder)) == sorted(name + ending for name in names for ending in (".md", ".tar.zst"))
    for name in names:
        assert unpacked(folder / f"{name}.tar.zst")["issue.md"] == (folder / f"{name}.md").read_text()


def names_of_now(folder, ending):
    """Those of the next minutes: which second a report is begun in is not known before."""
    now = time.time()
    return [folder / (time.strftime("dshang-issue-%Y%m%d-%H%M%S", time.gmtime(now + n)) + ending) for n in range(180)]


@pytest.mark.parametrize("ending", ["", ".md", ".tar.zst"])
def test_a_name_of_the_time_that_is_taken_gets_a_number(tmp_path, tools, ending):
    folder = tmp_path / "reports"
    folder.mkdir()
    taken = names_of_now(folder, ending)
    for one in taken:
        one.write_text("mine")
    told = issue(cwd=folder, path=tools)
    assert told.returncode == 0, told
    made = sorted(set(folder.iterdir()) - set(taken))
    assert [one.name.split("-")[-1] for one in made] == ["2.md", "2.tar.zst"], made
    assert all(one.read_text() == "mine" for one in taken)


def test_of_two_with_one_given_name_one_is_refused(tmp_path, tools):
    folder = tmp_path / "reports"
    folder.mkdir()
    codes, said, complained = ended([start(folder, tools, "--output", "bug") for _ in range(4)])
    assert sorted(codes) == [0, 2, 2, 2], complained
    assert all("exists already; choose another --output" in err for code, err in zip(codes, complained) if code)
    assert sorted(os.listdir(folder)) == ["bug.md", "bug.tar.zst"]
    assert unpacked(folder / "bug.tar.zst")["issue.md"] == (folder / "bug.md").read_text()


def test_help_names_what_it_writes():
    told = subprocess.run([BUILD / "dshang", "issue", "--help"], capture_output=True, text=True, timeout=20)
    assert told.returncode == 0 and "NAME.tar.zst" in told.stdout
