"""Runs `dshang doctor` as a user does.  TEST_BUILD: the build directory (default build/)."""
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).parent.parent.parent
BUILD = pathlib.Path(os.environ.get("TEST_BUILD", ROOT / "build")).absolute()
HERE = pathlib.Path(__file__).parent
SAYS_WRONG = {"error", "hang"}


def doctor(*arguments, text="", cwd=None, env=None):
    return subprocess.run([BUILD / "dshang", "doctor", *map(str, arguments)], input=text, cwd=cwd, env=env,
                          capture_output=True, text=True, timeout=150)


def findings(*arguments, **how):
    told = doctor(*arguments, "--json", **how)
    assert told.returncode in (0, 1) and told.stderr == "", told.stderr
    report = json.loads(told.stdout)
    assert report["schema"] == 1
    for finding in report["findings"]:
        assert list(finding) == ["id", "severity", "where", "summary", "fix"]
        assert finding["summary"] and finding["fix"] and all(finding["fix"]), finding
    wrong = any(finding["severity"] in SAYS_WRONG for finding in report["findings"])
    assert told.returncode == (1 if wrong else 0), report
    return report["findings"]


def told(tmp_path, facts=None, config=None, env=None, hostfile=None, checkpoint=None, model=None):
    """The findings for made-up facts; files are written below tmp_path."""
    arguments = ["--facts", "-"]
    if config is not None:
        (tmp_path / "ds_config.json").write_text(config if isinstance(config, str) else json.dumps(config))
        arguments.insert(0, tmp_path / "ds_config.json")
    if env is not None:
        (tmp_path / "job.env").write_text("".join(f"{name}={value}\n" for name, value in env.items()))
        arguments += ["--env-file", tmp_path / "job.env"]
    if hostfile is not None:
        (tmp_path / "hostfile").write_text(hostfile)
        arguments += ["--hostfile", tmp_path / "hostfile"]
    if checkpoint is not None:
        arguments += ["--checkpoint", make_checkpoint(tmp_path / "checkpoint", checkpoint)]
    if model is not None:
        (tmp_path / "config.json").write_text(model if isinstance(model, str) else json.dumps(model))
        arguments += ["--model", tmp_path]
    return findings(*arguments, text=json.dumps(facts or {}))


def make_checkpoint(folder, lines):
    """Empty files of these names; `latest=TEXT` is a file with content."""
    folder.mkdir()
    for line in lines:
        name, _, content = line.partition("=")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder
