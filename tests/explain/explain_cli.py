"""Runs `dshang explain` as a user does.  TEST_BUILD: the build directory (default build/)."""
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).parent.parent.parent
BUILD = pathlib.Path(os.environ.get("TEST_BUILD", ROOT / "build")).absolute()
HERE = pathlib.Path(__file__).parent


def explain(*arguments, text="", cwd=None):
    """text: str or bytes, on standard input."""
    data = text if isinstance(text, bytes) else text.encode()
    told = subprocess.run([BUILD / "dshang", "explain", *map(str, arguments)], input=data, cwd=cwd, capture_output=True, timeout=300)
    told.stdout, told.stderr = told.stdout.decode(), told.stderr.decode()  # valid UTF-8, whatever the log holds
    return told


def report(*arguments, **how):
    told = explain("--json", *arguments, **how)
    assert told.returncode in (0, 1) and told.stderr == "", told.stderr
    result = json.loads(told.stdout)
    assert result["schema"] == 1
    for finding in result["findings"]:
        assert list(finding) == ["id", "severity", "where", "summary", "fix"]
        assert finding["severity"] in ("hang", "error", "warning", "info")
        assert finding["where"] and finding["summary"] and finding["fix"] and all(finding["fix"]), finding
    failed = any(not one["traceback"] for one in result["unknown"])  # a launcher says so, nothing says why
    assert told.returncode == (1 if result["findings"] or failed else 0), result
    return result


def findings(*arguments, **how):
    return report(*arguments, **how)["findings"]


def ids(text, *arguments):
    return [finding["id"] for finding in findings("-", *arguments, text=text)]
