"""What goes wrong around dshang stays outside the job."""
import subprocess

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
