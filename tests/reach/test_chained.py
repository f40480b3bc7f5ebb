"""Another tool that wraps the same functions, preloaded before or behind: both see every call once."""
import pytest
from reach_job import LIBRARY, PROGRAMS, SIMCUDA, said

BEFORE, BEHIND = PROGRAMS / "libbefore.so", PROGRAMS / "libbehind.so"
PROGRAM = """
    %s
    for side in %s:
        tool = ctypes.CDLL(reach("lib%%s.so" %% side))
        print(side, tool[side + "_reduces"](), tool[side + "_mallocs"]())
"""
PRELOADED = """
    process = Gpu()
    comm, stream = process.communicator(), process.stream()
    for _ in range(3): process.all_reduce(comm, stream, 1 << 18)
    process.sync(stream)
"""
IN_A_LIBRARY = """
    caller = ctypes.CDLL(reach("libcaller_beside.so"))
    check(caller.caller_run(3))
"""


@pytest.mark.parametrize("sides", [("before",), ("behind",), ("before", "behind")], ids="+".join)
def test_every_call_is_seen_once(job, sides):
    preload = [BEFORE] * ("before" in sides) + [LIBRARY] + [BEHIND] * ("behind" in sides) + [SIMCUDA]
    out, err = job.run(PROGRAM % (PRELOADED.strip(), sides), preload=preload)
    assert out == "".join("%s 3 3\n" % side for side in sides) and said(err) == []
    process, = job.records()
    assert process.ops() == ["all_reduce"] * 3
    assert int(process.live["device"]) == 3 << 20 and int(process.live["allocations"]) == 3


def test_before_libdshang_with_nccl_beside_the_caller(job):
    """RTLD_NEXT of the other tool gives libdshang's wrapper, which finds NCCL where the other tool could not."""
    out, err = job.run(PROGRAM % (IN_A_LIBRARY.strip(), ("before",)), preload=[BEFORE, LIBRARY])
    assert out == "before 3 1\n" and said(err) == []
    process, = job.records()
    assert process.ops() == ["all_reduce"] * 3 and int(process.live["device"]) == 4000
