"""Errors that the installed torch and DeepSpeed raise, not texts of ours: each is known."""
import subprocess
import sys

import pytest

from explain_cli import HERE, findings

MESSAGES = HERE / "programs" / "messages.py"


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("messages")
    made = subprocess.run([sys.executable, MESSAGES, folder], capture_output=True, text=True, timeout=300)
    assert made.returncode == 0, made.stdout + made.stderr
    return folder


def test_what_torch_and_deepspeed_say_is_known(logs):
    made = sorted(logs.glob("*.log"))
    assert len(made) >= 45
    told = {log.name: [one["id"] for one in findings(log)] for log in made}
    assert told == {log.name: [log.name.rsplit(".", 2)[0]] for log in made}
