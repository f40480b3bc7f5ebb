"""Where NCCL lies: two in a process, inside its caller, hidden, opened apart from everything else."""
import pytest
from reach_job import LIBRARY, PROGRAMS, SIMCUDA, said

# MiB of device memory that the first caller's communicator took in each library, then the second one's.
TWO = """
    def caller(): return ctypes.CDLL(reach("libcaller_beside.so"))              # RTLD_LOCAL, with libnccl.so.2 beside it
    def other(): return Gpu(reach("libother_nccl.so.2"), ctypes.RTLD_GLOBAL)
    %s
    def count_free():
        here.caller_free.restype = SIZE
        return here.caller_free(), there.free_memory()
    before = count_free()
    check(here.caller_run(3))
    after_own = count_free()
    process = Gpu()                                                             # the wrappers
    comm = process.communicator()
    for _ in range(2): process.all_reduce(comm, None)
    process.sync(None)
    check(here.caller_reduce(1))
    after_other = count_free()
    print([a - b >> 20 for a, b in zip(before, after_own)], [a - b >> 20 for a, b in zip(after_own, after_other)])
"""


def test_each_of_two_nccls_gets_its_own_calls(job):
    """As without dshang: who was bound to his own before another was opened RTLD_GLOBAL keeps it, all others get that one."""
    out, err = job.run(TWO % "here = caller(); there = other()", preload=[LIBRARY])
    assert out == "[256, 0] [0, 256]\n" and said(err) == []
    process, = job.records()
    assert len(process.comms) == 2 and len({comm["id"] for comm in process.comms}) == 2
    assert [call.comm for call in process.calls] == ["c0"] * 3 + ["c1"] * 2 + ["c0"]


def test_a_caller_loaded_later_is_bound_to_the_global_one(job):
    out, err = job.run(TWO % "there = other(); here = caller()", preload=[LIBRARY])
    without, _ = job.run(TWO % "there = other(); here = caller()", preload=[])
    assert out == without == "[256, 256] [256, 256]\n" and said(err) == []       # both ask the same device


def test_nccl_inside_its_caller_and_exported(job):
    _, err = job.run("""
        check(ctypes.CDLL(reach("libcaller_inside.so")).caller_run(4))
    """, preload=[LIBRARY])
    assert said(err) == []
    process, = job.records()
    assert process.ops() == ["all_reduce"] * 4 and len(process.comms) == 1
    assert process.facts["version.nccl"] == "2.30.7"


@pytest.mark.parametrize("library, mode", [("libcaller_hidden.so", "0"), ("libcaller_inside.so", "os.RTLD_DEEPBIND")],
                         ids=["hidden", "deepbind"])
def test_calls_that_cannot_be_seen_are_said_once(job, library, mode):
    """The rank itself is seen, by CUDA's functions."""
    out, err = job.run("""
        Gpu().malloc(1000)
        caller = ctypes.CDLL(reach("%s"), mode=%s)
        check(caller.caller_run(2))
        check(caller.caller_start_service())
        time.sleep(3.5)
        check(caller.caller_reduce(2))
        print("fine")
    """ % (library, mode), preload=[LIBRARY, PROGRAMS / "libfast_clock.so", SIMCUDA], FAST_CLOCK=100, DSHANG_MONITOR="/bin/true")
    assert out == "fine\n"
    loud, = [line for line in said(err) if "monitor" not in line]
    assert "NOT INTERCEPTING" in loud
