"""Every kind of frame of every interpreter: call sites are right and nothing breaks, while stacks are asked for.

STRESS_SECONDS: how long (default 5), all interpreters at the same time.  TEST_PYTHONS: see tests/pyframes/interpreters.py.
"""
import json
import os
import sys

import pytest
from reach_job import HERE, Job

sys.path.insert(0, str(HERE.parent / "pyframes"))
from interpreters import PYTHONS, known_version  # noqa: E402

SECONDS = float(os.environ.get("STRESS_SECONDS", "5"))


@pytest.fixture(scope="module")
def stressed(tmp_path_factory):
    jobs = {}
    for python in PYTHONS:
        job = Job(tmp_path_factory.mktemp("stress"))
        ranks = [job.start([python, HERE / "programs" / "frames.py", str(SECONDS)], rank=rank, world=2, DSHANG_STALL_AFTER="0.5",
                           DSHANG_PROBE=None) for rank in range(2)]
        jobs[python] = job, ranks
    yield jobs
    for job, _ in jobs.values():
        job.close()


@pytest.mark.parametrize("python", PYTHONS, ids=["%d.%d" % known_version(python) for python in PYTHONS])
def test_every_kind_of_frame(stressed, python):
    job, ranks = stressed[python]
    ended = [job.end(rank, seconds=SECONDS + 60) for rank in ranks]
    result = json.loads(ended[1][0].splitlines()[-1])
    assert result["problems"] == []
    assert {"generators", "coroutines", "made", "called_back", "short_threads"} <= set(result["done"])
    # That rank 0 waits for so long may be told.
    assert "no Python call sites" not in ended[0][1] + ended[1][1]
    process = job.records()[1]
    checked = set()
    for call in process.calls:
        line = call.words[1]
        if line not in result["callers"]:
            continue                                    # of the world communicator
        mine = [frame.split(" ", 1) for frame in call.frames if "/frames.py:" in frame]
        names = [name.rsplit(".", 1)[-1] for _, name in mine]
        assert names[:2] == ["call", "reduce"] and mine[2][0].endswith("/frames.py:" + line), (line, call.frames)
        assert names[2] == result["callers"][line], (names, line)
        checked.add(names[2])
    assert {"leaf", "thrown", "generators", "<genexpr>", "awaited", "produced", "consumed", "value", "__del__",
            "<lambda>"} <= checked, checked
    assert ("green_leaf" in checked) == ("greenlets" in result["done"])

