"""What goes wrong around dshang stays outside the job."""
import subprocess

import pytest
from conftest import BUILD

FORBID = """
    import struct
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
    def forbid(number, error):
        code = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | error), (0x06, 0, 0, 0x7fff0000)]
        raw = b"".join(struct.pack("<HBBI", *line) for line in code)
        assert process.prctl(38, 1, 0, 0, 0) == 0
        assert process.prctl(22, 2, ctypes.byref(Program(len(code), raw)), 0, 0) == 0
"""
MEMFD_CREATE, PIDFD_OPEN, EPERM = 319, 434, 1
IMPORTS = "import platform\nassert platform.machine() == 'x86_64'\n"


def forbidden(number, program):
    lines = [line[4:] for line in FORBID.splitlines()]
    return "\n".join(lines) + "\n%sforbid(%d, %d)\n%s" % (IMPORTS, number, EPERM, program)


def test_memfd_refused_a_file_takes_its_place(bench):
    temporary = bench.folder / "tmp"
    temporary.mkdir()
    bench.run(forbidden(MEMFD_CREATE, "process.cudaSetDevice(0); wait_for_monitor(); malloc(4096); time.sleep(0.2)"),
              TMPDIR=str(temporary))
    hello, = bench.events("hello")
    assert hello["bits"] == 7 and not (hello["seals"] or 0) & 2
    assert bench.image().live["device"] == 4096
    assert list(temporary.iterdir()) == []


def test_neither_memfd_nor_file(bench):
    out, err = bench.run(forbidden(MEMFD_CREATE, "process.cudaSetDevice(0); print('fine', threads())"),
                         TMPDIR="/no/such/directory")
    assert out.startswith("fine") and "dshang" not in out
    assert err.count("dshang:") == 1 and "not recording" in err


def test_no_room_for_flight_memory(bench):
    """RLIMIT_FSIZE acts on memfd and file alike, and exceeding it would end the process by SIGXFSZ."""
    out, err = bench.run("""
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        process.cudaSetDevice(0)
        print("fine", threads())
    """)
    assert out.startswith("fine") and "dshang" not in out
    assert err.count("dshang:") == 1 and "ulimit" in err


def test_no_pidfd(bench):
    rank = bench.start(forbidden(PIDFD_OPEN, "communicator(); time.sleep(1.5)"))
    bench.wait(lambda: bench.events("hello"))
    assert bench.events("hello")[0]["bits"] == 5
    rank.communicate(timeout=60)
    assert rank.returncode == 0


def test_stderr_closed_and_its_number_taken(bench):
    out, _ = bench.run("os.close(2); assert os.open('/dev/null', os.O_RDONLY) == 2; communicator(); wait_for_monitor(); print('fine')")
    assert out == "fine\n"
    assert bench.events("hello")[0]["bits"] == 3


def test_started_without_stderr_its_number_belongs_to_the_program(bench):
    """What dshang has to say is not written into the file that has the number."""
    out, _ = bench.run("""
        fd = os.open("data", os.O_WRONLY | os.O_CREAT)
        assert fd == 2
        os.set_inheritable(fd, True)
        os.write(fd, b"head")
        communicator()
        wait_for_monitor()
        for fd, target in descriptors().items():
            if "memfd:dshang" in target: os.close(fd)
        os.kill(monitors()[0], 9)       # now there is something to say
        time.sleep(1)
        print(open("data").read())
    """, watched=False, through=["sh", "-c", 'exec 2>&-; exec "$@"', "sh"])
    assert out == "head\n"
    assert bench.events("hello")[0]["bits"] == 3


@pytest.mark.parametrize("flags, is_stderr", [("os.O_WRONLY | os.O_APPEND", True), ("os.O_RDWR", False)])
def test_a_file_in_the_place_of_stderr(bench, flags, is_stderr):
    """A log that the program put there is one; a file that it also reads is data."""
    bench.run("""
        fd = os.open("file", os.O_CREAT | %s)
        os.dup2(fd, 2)
        communicator()
        wait_for_monitor()
    """ % flags)
    assert bench.events("hello")[0]["bits"] == (7 if is_stderr else 3)


def test_a_full_stderr_does_not_hold_the_job(bench):
    """A pipe that nobody reads takes 64 KiB; dshang's line is dropped then."""
    rank = bench.start("""
        import fcntl
        flags = fcntl.fcntl(2, fcntl.F_GETFL)
        fcntl.fcntl(2, fcntl.F_SETFL, flags | os.O_NONBLOCK)
        try:
            while True: os.write(2, b"x" * 4096)
        except BlockingIOError: pass
        fcntl.fcntl(2, fcntl.F_SETFL, flags)
        c = communicator(); time.sleep(0.5); all_reduce(c, stream()); print("fine", flush=True)
    """, DSHANG_MONITOR=None)
    assert rank.stdout.readline() == "fine\n"
    assert rank.wait(timeout=20) == 0


def test_the_program_closes_our_descriptors(bench):
    """A monitor that dies afterwards cannot be handed the memory again; that is said, and nothing foreign is sent."""
    out, err = bench.run("""
        communicator()
        wait_for_monitor()
        mine = [fd for fd, target in descriptors().items() if "memfd:dshang" in target]
        for fd in mine:
            os.close(fd)
            os.dup2(0, fd)
        os.kill(monitors()[0], 9)
        time.sleep(1)
        print(len(mine))
    """, watched=False)
    assert out == "1\n"
    assert len(bench.events("hello")) == 1
    assert "closed the descriptor" in err


def test_another_user_at_the_address_gets_nothing(bench):
    out, err = bench.run("""
        import socket, subprocess, sys
        job = subprocess.run([sys.executable, "-c", "from little import *; communicator(); wait_for_monitor()"]).returncode
        import json, glob
        event = [json.loads(l) for p in glob.glob(os.environ["FAKE_MONITOR_DIR"] + "/events.*") for l in open(p)]
        address = "\\0dshang-%d-%s" % (os.getuid(), [e for e in event if e["what"] == "hello"][0]["job"])
        time.sleep(1)
        reader, writer = os.pipe()
        other = os.fork()
        if other == 0:
            os.setuid(12345)
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            s.bind(address); s.listen(4)
            os.write(writer, b"!")
            c, _ = s.accept()
            os._exit(len(c.recvmsg(4096, 100)[0]) > 0)
        os.read(reader, 1)
        communicator()
        print(os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]))
    """)
    assert out == "0\n"
    assert "another user" in err


def test_a_stderr_whose_reader_is_gone_sends_no_signal(bench):
    rank = bench.start("""
        import signal
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        input()
        process.cudaSetDevice(0)            # has something to say, on this thread
        print("fine")
    """, stdin=subprocess.PIPE)
    rank.stderr.close()
    rank.stderr = None
    out, _ = rank.communicate("go\n", timeout=60)
    assert (rank.returncode, out) == (0, "fine\n")


CLOSES_DESCRIPTORS = """
    import socket
    communicator()
    wait_for_monitor()
    mine = [fd for fd, target in descriptors().items() if fd > 2 and ("memfd:dshang" in target or "socket:" in target)]
    assert len(mine) == 2
    for fd in mine:
        if %s: os.close(fd)
    ends = []
    while not ends or ends[-1][1].fileno() < 700:
        ends.append(socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    for a, b in ends:
        for _ in range(3): a.send(b"mine")
        b.send(b"mine")
    time.sleep(1.5)
    child = os.fork()
    if child == 0:
        for a, b in ends: os.fstat(a.fileno()), os.fstat(b.fileno())
        os._exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    for a, b in ends:
        a.settimeout(1), b.settimeout(1)
        assert [b.recv(100) for _ in range(3)] + [a.recv(100)] == [b"mine"] * 4
    print("all there")
"""


def test_numbers_that_the_program_has_taken_over_are_its_own(bench):
    """Nothing is read from them, and neither the rank nor its children close them."""
    out, err = bench.run(CLOSES_DESCRIPTORS % "True")
    assert out == "7\nall there\n"
    assert err.count("dshang:") == 1 and "closed dshang's descriptors" in err


def test_a_connection_that_the_program_closed_is_made_again(bench):
    out, err = bench.run(CLOSES_DESCRIPTORS % "fd not in [m for m, t in descriptors().items() if 'memfd:' in t]")
    assert out == "7\nall there\n"
    assert err.count("dshang:") == 1 and "made again" in err
    assert len(bench.events("hello")) == 2


@pytest.mark.parametrize("adopts", [0, 1])
def test_relative_paths_begin_where_the_rank_was_started(bench, adopts):
    """DSHANG_DIR and its default; also of a monitor whose parent is the rank itself."""
    away = bench.folder / "away"
    away.mkdir()
    out, _ = bench.run("""
        process.prctl(36, %d, 0, 0, 0)
        os.chdir("away")
        communicator()
        wait_for_monitor()
        print(os.getcwd())
    """ % adopts, DSHANG_DIR="out/here", DSHANG_MONITOR="./fake_monitor")
    assert out == "%s\n" % away
    assert bench.events("started")[0]["directory"] == str(bench.folder)


ADOPTS_ORPHANS = """
    import signal
    assert process.prctl(36, 1, 0, 0, 0) == 0       # PR_SET_CHILD_SUBREAPER, as the first process of a container is
    communicator()
    wait_for_monitor()
"""


def test_a_rank_that_adopts_orphans_waits_for_its_own_children_alone(bench):
    out, err = bench.run(ADOPTS_ORPHANS + """
    if os.fork() == 0: os._exit(3)
    signal.alarm(20)
    print(os.waitstatus_to_exitcode(os.wait()[1]))
    try: os.wait()
    except ChildProcessError: print("no more")
    """)
    assert out == "3\nno more\n" and err == ""
    assert len(bench.events("hello")) == 1


def test_such_a_rank_may_execute_another_program_and_wait_for_all_its_children(bench):
    """Its monitor becomes its child by that, and ends."""
    out, err = bench.run("""
    import glob, signal, sys
    if len(sys.argv) > 1:
        child = os.spawnlp(os.P_NOWAIT, "true", "true")
        signal.alarm(20)
        try:
            while True: print(os.wait()[0] == child)
        except ChildProcessError: print("no more")
        os._exit(0)
    assert process.prctl(36, 1, 0, 0, 0) == 0
    communicator()
    while not glob.glob(os.environ["DSHANG_DIR"] + "/flight/monitor.log"): time.sleep(0.05)
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, sys.argv[0], "again"])
    """, watched=False, DSHANG_MONITOR=str(BUILD / "dshang"))
    assert out.split("\n")[-3:] == ["True", "no more", ""] or out.split("\n")[-4:] == ["True", "False", "no more", ""], out


def test_such_a_rank_starts_the_next_monitor_and_keeps_no_remains_of_the_first(bench):
    out, err = bench.run(ADOPTS_ORPHANS + """
    os.kill(monitors()[0], 9)
    wait_for_monitor(2)
    time.sleep(1.5)
    def stat(pid): return open("/proc/%s/stat" % pid).read().rsplit(")", 1)[1].split()
    children = [p for p in os.listdir("/proc") if p.isdigit() and stat(p)[1] == str(os.getpid())]
    print([stat(p)[0] for p in children])
    """)
    assert out == "['S']\n" and err.count("dshang:") == 1
    assert len(bench.events("hello")) == 2
