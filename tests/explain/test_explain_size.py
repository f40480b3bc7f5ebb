"""Logs of any size are read in one pass with little memory.  E2E_LONG=1: of more than 200 MB, too."""
import os
import pathlib
import subprocess
import sys

import pytest

from explain_cli import BUILD, ROOT

sys.path.insert(0, str(ROOT / "tests" / "bench"))
from explain_speed import write  # noqa: E402

SIZES = [4] + ([250] if os.environ.get("E2E_LONG") == "1" else [])
MEMORY = 100 << 20


@pytest.mark.parametrize("megabytes", SIZES)
@pytest.mark.parametrize("piped", [False, True])
def test_a_large_log_is_read_with_little_memory(megabytes, piped, tmp_path):
    path: pathlib.Path = tmp_path / "job.log"
    size = write(path, "mixed", megabytes * 1000000)
    assert size >= megabytes * 1000000
    with open(path, "a") as log:
        log.write("\n[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
    limited = ["prlimit", f"--data={MEMORY}", BUILD / "dshang", "explain"]
    if piped:
        with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
            told = subprocess.run(limited, stdin=cat.stdout, capture_output=True, text=True, timeout=300)
    else:
        told = subprocess.run([*limited, path], capture_output=True, text=True, timeout=300)
    assert told.returncode == 1 and told.stderr == "", told.stderr
    lines = path.read_bytes().count(b"\n")
    assert "[12.6-2]" in told.stdout and f":{lines}, rank 3" in told.stdout and f"{lines} lines" in told.stdout
