"""Programs that have NCCL from dlsym() on a handle of their own, as ctypes has it: seen with libdshang_dlsym.so."""
import subprocess
import sys

import pytest
from reach_job import DLSYM, LIBRARY, PROGRAMS, SIMCUDA, said

WITH = [LIBRARY, DLSYM]

CTYPES = """
    own = Gpu(reach("libnccl.so.2"))
    comm = own.communicator()
    check(own.ncclGroupStart())
    for _ in range(3): own.all_reduce(comm, None)
    check(own.ncclGroupEnd())
    own.sync(None)
"""


def test_ctypes_is_seen(job):
    _, err = job.run(CTYPES, preload=WITH)
    assert said(err) == []
    process, = job.records()
    assert process.ops() == ["all_reduce"] * 3 and len({call.pairs["group"] for call in process.calls}) == 1
    assert [frame.split()[-1] for frame in process.calls[0].frames] == ["Gpu.all_reduce", "<module>"]
    assert "handle" in process.comms[0]


def test_without_it_ctypes_is_not(job):
    job.run(CTYPES, preload=[LIBRARY], RANK=None)
    assert not job.dir.exists()


def test_a_library_named_by_the_caller_is_the_one_that_is_called(job):
    """Beside a global one and a caller's own; what is not NCCL's is left alone, and what is not there is NULL."""
    out, err = job.run("""
        ctypes.CDLL(reach("libnccl.so.2"), ctypes.RTLD_GLOBAL)
        own = Gpu(reach("libother_nccl.so.2"))
        before = own.free_memory()
        comm = own.communicator()
        own.all_reduce(comm, None, 1 << 18)
        own.sync(None)
        print(before - own.free_memory() >> 20)
        dl = ctypes.CDLL(None)
        dl.dlsym.restype, dl.dlsym.argtypes = POINTER, [POINTER, ctypes.c_char_p]
        dl.dlerror.restype = ctypes.c_char_p
        print(dl.dlsym(own.so._handle, b"ncclNoSuchThing"), dl.dlerror() is not None)
        print(dl.dlsym(own.so._handle, b"ncclAllReduce") != dl.dlsym(own.so._handle, b"pncclAllGather"), dl.dlerror())
        print(dl.dlsym(None, b"getpid") == dl.dlsym(dl._handle, b"getpid"))
    """, preload=WITH)
    assert out == "257\nNone True\nTrue None\nTrue\n" and said(err) == []
    process, = job.records()
    assert process.ops() == ["all_reduce"]


def test_a_second_one_is_said_and_works_as_without(job):
    out, err = job.run("""
        first, second = Gpu(reach("libnccl.so.2")), Gpu(reach("libother_nccl.so.2"))
        before = first.free_memory(), second.free_memory()
        for one in first, second:
            comm = one.communicator()
            one.all_reduce(comm, None, 1 << 18)
            one.sync(None)
        print([a - b >> 20 for a, b in zip(before, (first.free_memory(), second.free_memory()))])
    """, preload=WITH)
    assert out == "[257, 257]\n"
    line, = said(err)
    assert "second NCCL" in line
    process, = job.records()
    assert process.ops() == ["all_reduce"]


def test_beside_a_caller_that_is_linked(job):
    """torch by its own calls and a ctypes user in one process, on the same NCCL."""
    _, err = job.run("""
        caller = ctypes.CDLL(reach("libcaller_beside.so"))
        check(caller.caller_run(2))
        own = Gpu(reach("libnccl.so.2"))
        comm = own.communicator()
        own.all_reduce(comm, None)
        check(caller.caller_reduce(1))
        own.sync(None)
    """, preload=WITH)
    assert said(err) == []
    process, = job.records()
    assert [call.comm for call in process.calls] == ["c0", "c0", "c1", "c0"] and len(process.comms) == 2


def test_a_disabled_one_and_one_without_libdshang_change_nothing(job):
    for preload, disable in ((WITH, "1"), ([DLSYM], None)):
        out, err = job.run(CTYPES + "    print('fine')\n", preload=preload, DSHANG_DISABLE=disable)
        assert (out, said(err)) == ("fine\n", [])
    assert not job.dir.exists()


def test_another_interposer_that_looks_behind_itself(job):
    """RTLD_NEXT means what it meant: the scope behind the caller, not behind libdshang_dlsym.so."""
    out, err = job.run("""
        process = Gpu()
        comm = process.communicator()
        process.all_reduce(comm, None)
        process.sync(None)
        print([ctypes.CDLL(reach("lib%s.so" % side))[side + "_reduces"]() for side in ("before", "behind")])
    """, preload=[PROGRAMS / "libbefore.so", *WITH, PROGRAMS / "libbehind.so", SIMCUDA])
    assert out == "[1, 1]\n" and said(err) == []
    process, = job.records()
    assert process.ops() == ["all_reduce"]


def test_other_programs_do_not_notice(tmp_path):
    python = [sys.executable, "-c", "import ssl, sqlite3, ctypes; print(ssl.OPENSSL_VERSION)"]
    for command in (["/bin/true"], ["git", "--version"], python):
        results = []
        for preload in ("", " ".join(map(str, WITH))):
            ended = subprocess.run(command, env={"PATH": "/usr/bin:/bin", "LD_PRELOAD": preload}, capture_output=True, cwd=tmp_path)
            results.append((ended.returncode, ended.stdout, ended.stderr))
        assert results[0] == results[1]


def test_every_kind_of_lookup_is_as_without(job):
    for preload in ([], [DLSYM], WITH):
        assert job.run([PROGRAMS / "lookup"], preload=preload, RANK=None) == ("1 1 1\n", "")


VIRTUAL = """
    process = Gpu()
    check(process.cudaSetDevice(0))
    process.communicator()
    %s
    get.restype, get.argtypes = INT, [ctypes.c_char_p, POINTER, INT, ctypes.c_ulonglong, POINTER]
    def driver(name, arguments):
        found, status = POINTER(), INT(-1)
        check(get(name, ctypes.byref(found), 13000, 0, ctypes.byref(status)))
        assert found.value and status.value == 0
        return ctypes.CFUNCTYPE(INT, *arguments)(found.value)
    LONG = ctypes.c_ulonglong
    class Properties(ctypes.Structure):
        _fields_ = [("type", INT), ("handles", INT), ("location", INT), ("device", INT), ("rest", INT * 8)]
    create = driver(b"cuMemCreate", [POINTER, SIZE, POINTER, LONG])
    release = driver(b"cuMemRelease", [LONG])
    size, handles = 4 << 20, [LONG(), LONG()]
    for handle in handles:
        check(create(ctypes.byref(handle), size, ctypes.byref(Properties(1, 0, 1, 0)), 0))
    check(release(handles[0]))
"""
FROM_RUNTIME = """
    entry = process.so.cudaGetDriverEntryPointByVersion
    entry.argtypes = [ctypes.c_char_p, POINTER, ctypes.c_uint, ctypes.c_ulonglong, POINTER]
    address = POINTER()
    check(entry(b"cuGetProcAddress", ctypes.byref(address), 13000, 0, ctypes.byref(INT())))
    get = ctypes.CFUNCTYPE(INT)(address.value)
    get = ctypes.CFUNCTYPE(INT, ctypes.c_char_p, POINTER, INT, ctypes.c_ulonglong, POINTER)(address.value)
"""


@pytest.mark.parametrize("way, counted", [(FROM_RUNTIME, 4 << 20), ("    get = process.so.cuGetProcAddress_v2\n", 0)],
                         ids=["from the runtime", "from the driver"])
def test_driver_functions_by_cu_get_proc_address(job, way, counted):
    """Counted where the runtime handed out cuGetProcAddress itself; the driver's own symbol is not wrapped."""
    _, err = job.run(VIRTUAL % way.strip())
    assert said(err) == []
    process, = job.records()
    assert int(process.live.get("virtual", 0)) == counted
