"""Every kind of frame of every interpreter: call sites are right and nothing breaks, while stacks are asked for.

STRESS_SECONDS: how long (default 5), all interpreters at the same time.  TEST_PYTHONS: see tests/pyframes/interpreters.py.
"""
import json
import os
import sys

import pytest
from reach_job import HERE, Job

sys.path.insert(0, str(HERE.parent / "pyframes"))
from interpreters import PYTHONS, is_free_threaded, name_of  # noqa: E402

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


OFF = "no Python call sites and stacks: this Python is a free-threaded build"


@pytest.mark.parametrize("python", PYTHONS, ids=map(name_of, PYTHONS))
def test_every_kind_of_frame(stressed, python):
    job, ranks = stressed[python]
    ended = [job.end(rank, seconds=SECONDS + 60) for rank in ranks]
    result = json.loads(ended[1][0].splitlines()[-1])
    assert result["problems"] == []
    assert {"generators", "coroutines", "made", "called_back", "short_threads"} <= set(result["done"])
    # That rank 0 waits for so long may be told.
    loud = [err.count("no Python call sites") for _, err in ended]
    process = job.records()[1]
    if is_free_threaded(python):        # nothing is read, which is said once
        assert loud == [1, 1] and all(OFF in err for _, err in ended)
        assert len(process.calls) > 100 and not any(frame for call in process.calls for frame in call.frames)
        return
    assert loud == [0, 0]
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

