"""How a rank ends is written down, and is exactly what it would be without dshang."""
import json
import signal
import subprocess
import time

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


def slow_monitor(bench, seconds, program):
    """A monitor program that begins late, as on a machine that has no time for it."""
    script = bench.folder / "slow_monitor"
    script.write_text("#!/bin/sh\nsleep %s\nexec %s \"$@\"\n" % (seconds, program))
    script.chmod(0o755)
    return str(script)


@pytest.mark.parametrize("status", [0, 3])
def test_a_rank_that_is_shorter_than_its_monitors_start_is_handed_over(bench, status):
    bench.run("import sys; all_reduce(communicator(), stream()); sys.exit(%d)" % status, status=status, watched=False,
              DSHANG_MONITOR=slow_monitor(bench, 0.4, bench.monitor))
    bench.wait(lambda: bench.events("gone", pid=bench.pid))
    assert (bench.image().ending, bench.image().ending_code) == ("exit", status)
    assert bench.image().call_head == 1


@pytest.mark.parametrize("number", [9, 2])
def test_nothing_is_lost_with_a_rank_that_is_killed_before_its_monitor_runs(bench, number):
    bench.run("""
        c = communicator()
        all_reduce(c, stream())
        import signal
        if %(number)d != 9: signal.signal(%(number)d, signal.SIG_DFL)
        os.kill(os.getpid(), %(number)d)
    """ % {"number": number}, status=-number, watched=False, DSHANG_MONITOR=slow_monitor(bench, 1, bench.monitor))
    bench.wait(lambda: bench.events("gone", pid=bench.pid))
    assert bench.image().call_head == 1


def test_nor_where_dshang_gets_no_time_before(bench):
    """The helper thread, which begins with naming itself, begins late."""
    source, library = bench.folder / "late.c", bench.folder / "late.so"
    source.write_text("""
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <string.h>
        #include <sys/prctl.h>
        #include <unistd.h>
        int prctl(int option, ...) {
            static int (*real)(int, ...);
            if (!real) real = (int (*)(int, ...))dlsym(RTLD_NEXT, "prctl");
            __builtin_va_list rest;
            __builtin_va_start(rest, option);
            const char* name = __builtin_va_arg(rest, const char*);
            __builtin_va_end(rest);
            if (option == PR_SET_NAME && !strcmp(name, "dshang")) usleep(300000);
            return real(option, name, 0, 0, 0);
        }
    """)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    bench.run("all_reduce(communicator(), stream()); os.kill(os.getpid(), 9)", status=-9, watched=False,
              LD_PRELOAD="%s %s" % (library, bench.environment()["LD_PRELOAD"]))
    bench.wait(lambda: bench.events("gone", pid=bench.pid))
    assert bench.image().call_head == 1


def test_ranks_that_wake_together_start_one_monitor(bench):
    monitor = slow_monitor(bench, 0.3, bench.monitor)
    ranks = [bench.start("import sys; communicator(); sys.stdin.read()", stdin=subprocess.PIPE, DSHANG_MONITOR=monitor,
                         RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="6") for rank in range(6)]
    bench.wait(lambda: len(bench.events("hello")) == 6)
    for rank in ranks:
        rank.stdin.close()
    for rank in ranks:
        assert rank.wait(60) == 0
    assert len(bench.events("started")) == 1 and len(bench.events("hello")) == 6


def test_no_child_keeps_the_address_of_a_monitor_that_is_gone(bench):
    out, _ = bench.run("""
        def child():
            pid = os.fork()
            if not pid:
                time.sleep(10)
                os._exit(0)
            return pid

        communicator()
        children = []
        for _ in range(10):      # while the monitor is being started
            children.append(child())
        for n in 1, 2:
            wait_for_monitor(n)
            if n == 1: os.kill(monitors()[0], 9)
        for pid in children:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
        print("fine")
    """)
    assert out == "fine\n" and len(bench.events("started")) == 2


@pytest.mark.parametrize("end, status, noted", [
    ("os.kill(os.getpid(), 2)", -2, ("signal", 2)), ("os.kill(os.getpid(), 15)", -15, ("signal", 15)),
    ("os._exit(4)", 4, ("exit", 4))])
def test_so_is_one_that_is_ended_or_leaves_without_exit_handlers(bench, end, status, noted):
    bench.run("""
        import signal
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        all_reduce(communicator(), stream())
        %s
    """ % end, status=status, watched=False, DSHANG_MONITOR=slow_monitor(bench, 0.4, bench.monitor))
    bench.wait(lambda: bench.events("gone", pid=bench.pid))
    assert (bench.image().ending, bench.image().ending_code) == noted
    assert bench.image().call_head == 1


def test_short_ranks_are_judged(bench):
    if not (bench.build / "dshang").exists():
        pytest.fail("there is no dshang program in %s" % bench.build)
    monitor = slow_monitor(bench, 0.4, bench.build / "dshang")
    ranks = [bench.start("all_reduce(communicator(), stream())", DSHANG_MONITOR=monitor,
                         RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="3") for rank in range(3)]
    for rank in ranks:
        _, err = rank.communicate(timeout=60)
        assert rank.returncode == 0 and "no monitor" not in err, err
    report = bench.folder / "out" / "report.json"
    bench.wait(report.exists)
    bench.wait(lambda: len(list((bench.folder / "out" / "flight").glob("rank-*.flight"))) == 3)
    assert json.loads(report.read_text())["verdict"] == "healthy"
    assert [path.name for path in (bench.folder / "out").glob("attempt-*")] == ["attempt-1"]


def seconds_to_end(bench, program, **environment):
    """From the last line of the program until its process is gone."""
    rank = bench.start(program + "\nprint(time.monotonic(), flush=True)", **environment)
    out, _ = rank.communicate(timeout=60)
    assert rank.returncode == 0
    return time.monotonic() - float(out.split()[-1])


@pytest.mark.parametrize("why, program, environment", [
    ("handed over", "communicator(); wait_for_monitor()", {}),
    ("no communicator", "process.cudaSetDevice(0)", {"FAKE_MONITOR": "deaf"}),
    ("no monitor program", "communicator(); time.sleep(0.1)", {"DSHANG_MONITOR": "/no/such/program"}),
    ("disabled", "communicator()", {"FAKE_MONITOR": "deaf", "DSHANG_DISABLE": "1"})])
def test_an_end_that_has_nothing_to_wait_for_is_not_delayed(bench, why, program, environment):
    assert seconds_to_end(bench, program, **environment) < 0.7


def test_the_wait_for_a_monitor_that_never_listens_is_bounded(bench):
    assert seconds_to_end(bench, "communicator()", FAKE_MONITOR="deaf") < 3


def test_a_monitor_that_ends_at_its_start_is_given_up(bench):
    _, err = bench.run("communicator(); time.sleep(4)", FAKE_MONITOR="deaf")
    assert "no monitor: it ended at its start again and again" in err
    assert 2 <= len(bench.events("started")) <= 12


def test_a_forked_child_does_not_wait(bench):
    out, _ = bench.run("""
        import sys
        communicator()
        for end in sys.exit, os._exit:
            child = os.fork()
            if not child:
                end(5)     # sys.exit: with the handlers that it inherited
            begin = time.monotonic()
            _, status = os.waitpid(child, 0)
            print(os.WEXITSTATUS(status), time.monotonic() - begin)
    """, FAKE_MONITOR="deaf")
    for line in out.splitlines():
        status, seconds = line.split()
        assert status == "5" and float(seconds) < 0.7
