"""How a rank ends is written down, and is exactly what it would be without dshang."""
import signal

import pytest

WAYS = {
    "normal": ("", 0, ("exit", 0)),
    "exit": ("import sys; sys.exit(3)", 3, ("exit", 3)),
    "exception": ("raise RuntimeError", 1, ("exit", 1)),
    "_exit": ("os._exit(4)", 4, ("exit", 4)),
    "large status": ("import sys; sys.exit(259)", 3, ("exit", 3)),
    "_exit in an exit handler": ("import sys; process.__cxa_atexit(process._exit, 9, None); sys.exit(3)", 9, ("exit", 9)),
    "abort": ("os.abort()", -signal.SIGABRT, ("abort", signal.SIGABRT)),
    "SIGTERM": ("os.kill(os.getpid(), 15); time.sleep(60)", -15, ("signal", 15)),
    "SIGABRT": ("os.kill(os.getpid(), 6); time.sleep(60)", -6, ("signal", 6)),
    "SIGSEGV sent": ("os.kill(os.getpid(), 11); time.sleep(60)", -11, ("signal", 11)),
    "SIGBUS sent": ("os.kill(os.getpid(), 7); time.sleep(60)", -7, ("signal", 7)),
    "fault": ("ctypes.string_at(8)", -11, ("signal", 11)),
    "fault with faulthandler": ("import faulthandler; faulthandler.enable(); ctypes.string_at(8)", -11, ("signal", 11)),
    "SIGINT to a program without a handler": (
        "import signal; os.kill(os.getpid(), 2); time.sleep(60)", -2, ("signal", 2)),
    "SIGKILL": ("os.kill(os.getpid(), 9)", -9, (None, 0)),
    "handler of the program": (
        "import signal, sys; signal.signal(15, lambda *_: sys.exit(8)); os.kill(os.getpid(), 15); time.sleep(60)", 8, ("exit", 8)),
    "ignored signal": ("os.kill(os.getpid(), 15); time.sleep(0.2)", 0, ("exit", 0)),
}
BEFORE = {"SIGINT to a program without a handler": "import signal; signal.signal(2, signal.SIG_DFL)",
          "ignored signal": "import signal; signal.signal(15, signal.SIG_IGN)"}


@pytest.mark.parametrize("way", WAYS)
def test_ending(bench, way):
    code, status, noted = WAYS[way]
    before = BEFORE.get(way, "")
    bench.run("%s\ncommunicator()\nwait_for_monitor()\n%s" % (before, code), status=status)
    assert (bench.image().ending, bench.image().ending_code) == noted
    # Without dshang the status is the same.
    bench.run("%s\ncommunicator()\n%s" % (before, code), preload=False, status=status)


def test_a_crash_while_exiting_is_the_ending(bench):
    bench.run("""
        process.on_exit(process.strlen, ctypes.c_void_p(8))     # strlen(0 or a small status) faults
        communicator()
        wait_for_monitor()
    """, status=-11)
    assert (bench.image().ending, bench.image().ending_code) == ("signal", 11)
