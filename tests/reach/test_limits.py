"""Processes that the kernel restrains: the program ends as without dshang, with one line at most."""
import os
import platform
import shutil
import stat

import pytest
from reach_job import DLSYM, LIBRARY, PROGRAMS, SIMCUDA, said

NUMBERS = {"x86_64": {"process_vm_readv": 310, "memfd_create": 319, "pidfd_open": 434},
           "aarch64": {"process_vm_readv": 270, "memfd_create": 279, "pidfd_open": 434}}[platform.machine()]
NOBODY = 65534

# A filter that answers one system call with EPERM (seccomp of a container); children inherit it, the monitor among them.
FORBID = """
    import struct
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
    def forbid(number):
        code = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]
        raw = b"".join(struct.pack("<HBBI", *line) for line in code)
        libc = ctypes.CDLL(None)
        assert libc.prctl(38, 1, 0, 0, 0) == 0
        assert libc.prctl(22, 2, ctypes.byref(Program(len(code), raw)), 0, 0) == 0
"""


def test_a_setuid_program_does_not_load_it(open_job):
    """The loader leaves preloads out where the user is not the owner: nothing happens and nothing is said."""
    job = open_job
    shutil.copy(PROGRAMS / "privileged", job.folder / "privileged")
    os.chmod(job.folder / "privileged", 0o755 | stat.S_ISUID)
    program = [job.folder / "privileged"]
    as_nobody = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
    libraries = job.folder / "libraries"
    libraries.mkdir()
    for library in LIBRARY, DLSYM:
        shutil.copy(library, libraries)
    # setpriv itself runs in between, with the preload in it.
    preload = [libraries / LIBRARY.name, libraries / DLSYM.name]
    with_it = job.run(program, through=as_nobody, preload=preload)
    without = job.run(program, through=as_nobody, preload=[])
    assert with_it == without
    assert with_it[0].startswith("1 1 0 ") and with_it[1] == ""
    not_setuid, _ = job.run([PROGRAMS / "privileged"], preload=preload)
    assert not_setuid.split()[2] == "1"


@pytest.mark.parametrize("call", NUMBERS)
def test_system_calls_that_are_refused(job, call):
    """The communicator is made before: the simulated NCCL needs them itself, as nothing of dshang's does by then."""
    out, err = job.run(FORBID + """
    if %r == "memfd_create":
        unique = Gpu().unique_id()          # the simulated NCCL's own
        forbid(%d)
        process = Gpu()
        comm, stream = process.communicator(unique=unique), process.stream()
    else:
        forbid(%d)
        process = Gpu()
        comm, stream = process.communicator(), process.stream()
    for _ in range(3): process.all_reduce(comm, stream)
    process.sync(stream)
    time.sleep(0.5)
    print("fine")
    """ % (call, NUMBERS[call], NUMBERS[call]))
    assert out == "fine\n" and said(err) == []
    process, = job.records()
    assert process.ops() == ["all_reduce"] * 3 and process.ending == "exit 0"
    # Call sites need none of them.
    assert process.calls[0].frames[-1].endswith("<module>")


def test_stacks_without_process_vm_readv(job):
    """A rank that is stuck with the GIL is read through a pipe, and its host still tells what it does."""
    results = job.run_ranks(FORBID + """
    forbid(%d)
    process, rank = Gpu(), int(os.environ["RANK"])
    comm, stream = process.meet(), process.stream()
    process.all_reduce(comm, stream)
    process.sync(stream)
    def stuck():
        ctypes.PyDLL(None).sleep(6)         # with the GIL
    if rank == 1: stuck()
    process.all_reduce(comm, stream)
    process.sync(stream)
    print("fine")
    """ % NUMBERS["process_vm_readv"], world=2, DSHANG_STALL_AFTER="1")
    assert [out for out, _ in results] == ["fine\n"] * 2
    text = "".join(err for _, err in results)
    assert "rank 1" in text and "stuck" in text
    job.finished()


def test_io_counters_that_cannot_be_read(open_job):
    """A process that is not dumpable: its monitor, of the same user, is refused /proc/<pid>/io and more."""
    job = open_job
    libraries = job.folder / "build"
    libraries.mkdir()
    for name in ("libdshang.so", "libsimcuda.so", "dshang", "libnvidia-ml.so.1"):
        shutil.copy(LIBRARY.parent / name, libraries / name)
    out, err = job.run("""
    process = Gpu()
    comm, stream = process.communicator(), process.stream()
    for _ in range(3): process.all_reduce(comm, stream)
    process.sync(stream)
    assert ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) == 0      # PR_SET_DUMPABLE
    child = os.fork()
    if child == 0:
        try: open("/proc/%d/io" % os.getppid()).read()
        except PermissionError: os._exit(7)
        os._exit(8)
    print(os.waitpid(child, 0)[1] >> 8)
    time.sleep(1.5)
    """, preload=[libraries / "libdshang.so", libraries / "libsimcuda.so"],
                       through=["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"])
    assert out == "7\n" and said(err) == []
    process, = job.records()
    assert process.ops() == ["all_reduce"] * 3
    assert '"verdict": "healthy"' in (job.dir / "report.json").read_text()


LIMITED = """
    import resource
    %s
    process = Gpu()
    result = process.cudaSetDevice(0)
    time.sleep(1.5)
    print("fine", result)
"""
ADDRESS_SPACE = "pages = int(open('/proc/self/statm').read().split()[0]); " \
                "resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + (%d << 20),) * 2)"
# Threads and processes of one user count, the superuser's do not: each program is a user of its own.
PROCESSES = "resource.setrlimit(resource.RLIMIT_NPROC, (%d,) * 2); os.setgid(%d); os.setuid(%d)"


def check_limited(job, limits, limit):
    """Programs under `limit(number, with_dshang)` of all limits, at the same time.  The lines of each by its number."""
    bare = [job.start(LIMITED % limit(number, False), preload=[SIMCUDA]) for number in limits]
    ranks = [job.start(LIMITED % limit(number, True), DSHANG_DIR=job.folder / ("out%s" % number)) for number in limits]
    found = {}
    for number, one, rank in zip(limits, bare, ranks):
        without, _ = job.end(one)
        out, err = job.end(rank)
        found[number] = said(err)
        assert out == without and len(found[number]) <= 1, (number, err)
    return found


def test_little_address_space(job):
    """Flight memory, a thread's stack, the monitor's start: each is the first that does not fit."""
    found = check_limited(job, (1, 4, 8, 12, 20, 40, 80, 200), lambda megabytes, _: ADDRESS_SPACE % megabytes)
    assert "could not be mapped" in found[1][0]
    assert any("no helper thread" in line for lines in found.values() for line in lines)
    assert found[200] == []
    job.finished()


def test_no_more_processes(open_job):
    job = open_job
    for name in ("libdshang.so", "dshang"):
        shutil.copy(LIBRARY.parent / name, job.folder / name)
    enough = 30
    limits = [*range(8), enough]

    def limit(number, with_dshang):
        user = 60000 + (os.getpid() * 32 + 2 * limits.index(number) + with_dshang) % 4000
        return PROCESSES % (number, user, user)
    found = check_limited(job, limits, limit)
    assert "no helper thread" in found[1][0]
    assert any("monitor" in line for lines in found.values() for line in lines)
    assert found[enough] == []
    job.finished()
