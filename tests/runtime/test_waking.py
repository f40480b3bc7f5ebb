"""When a process wakes, what it hands over, and that it otherwise leaves no trace."""
import signal

QUIET = """
    print(threads(), [t for t in descriptors().values() if "dshang" in t])
"""


def test_inert_without_a_communicator(bench):
    program = "process.cudaSetDevice(0); malloc(1 << 20)\n" + QUIET.strip()
    out, err = bench.run(program, RANK=None, WORLD_SIZE=None)
    assert "dshang" not in out and err == ""
    assert not bench.events("started")
    assert not (bench.folder / "out").exists()


def test_inert_with_rank_but_without_cuda(bench):
    out, err = bench.run(QUIET.strip())
    assert "dshang" not in out and err == "" and not bench.events("started")


def test_disabled(bench):
    out, err = bench.run("c = communicator(); all_reduce(c, stream())\n" + QUIET.strip(), DSHANG_DISABLE="1")
    assert "dshang" not in out and err == "" and not bench.events("started")


def test_wakes_at_the_device_of_a_rank_process(bench):
    out, _ = bench.run("process.cudaSetDevice(0); wait_for_monitor(); print(threads())")
    assert "'dshang'" in out
    assert bench.events("hello")[0]["provisional"] == 1


def test_wakes_at_an_allocation_of_a_rank_process(bench):
    bench.run("malloc(1 << 20); wait_for_monitor()")
    assert bench.image().live["device"] == 1 << 20


def test_wakes_at_an_import_of_a_rank_process(bench):
    bench.run("process.dshang_torch_distributed_imported(); wait_for_monitor()")
    assert bench.events("hello")[0]["provisional"] == 1


def test_an_import_without_rank_wakes_nothing(bench):
    out, _ = bench.run("process.dshang_torch_distributed_imported()\n" + QUIET.strip(), RANK=None)
    assert "dshang" not in out and not bench.events("started")


def test_wakes_at_a_communicator_without_rank(bench):
    bench.run("communicator(); wait_for_monitor()", RANK=None, WORLD_SIZE=None)
    assert bench.events("hello")[0]["rank"] == -1


def test_hand_over(bench):
    bench.run("c = communicator(); wait_for_monitor()", RANK="3", LOCAL_RANK="1", WORLD_SIZE="8",
              TORCHELASTIC_RESTART_COUNT="2", DSHANG_STALL_AFTER="7", DEEPSPEED_TIMEOUT="11")
    hello, = bench.events("hello")
    assert (hello["rank"], hello["world"], hello["restart"]) == (3, 8, 2)
    assert hello["pid"] == hello["peer"] == bench.pid
    assert hello["bits"] == 7
    assert hello["seals"] & 7 == 7                       # seal, shrink, grow
    assert hello["size"] == hello["file_size"]
    image = bench.image()
    assert (image.pid, image.rank, image.local_rank, image.world_size) == (bench.pid, 3, 1, 8)
    assert "%016x" % image.job == hello["job"]
    facts = image.facts()
    assert facts["env.DSHANG_STALL_AFTER"] == "7" and facts["env.DEEPSPEED_TIMEOUT"] == "11"
    assert facts["env.MASTER_ADDR"] == "127.0.0.1"


def test_the_monitor_is_started_apart_from_the_rank(bench):
    out, _ = bench.run("""
        import signal
        children = []
        signal.signal(signal.SIGCHLD, lambda *_: children.append(1))
        communicator()
        wait_for_monitor()
        try:
            print("child", os.waitpid(-1, os.WNOHANG))
        except ChildProcessError:
            print("no child", children)
    """)
    assert out.strip() == "no child []"
    started, = bench.events("started")
    assert started["preload"] is None
    assert started["parent"] != bench.pid
    assert started["blocked"] == []
    assert started["arguments"][:2] == ["monitor", "--job"]
    assert started["group"] == started["monitor"]


def test_the_helper_blocks_every_signal(bench):
    out, _ = bench.run("""
        communicator()
        wait_for_monitor()
        for task in os.listdir("/proc/self/task"):
            text = open("/proc/self/task/%s/status" % task).read()
            if text.startswith("Name:\\tdshang\\n"):
                print(text.split("SigBlk:")[1].split()[0])
    """)
    blocked = int(out, 16)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGUSR1, signal.SIGALRM):
        assert blocked >> (number - 1) & 1


def test_ranks_of_one_job_share_a_monitor_and_jobs_do_not(bench):
    first = [bench.start("communicator(); wait_for_monitor(); time.sleep(0.5)", RANK=str(r), LOCAL_RANK=str(r), WORLD_SIZE="4")
             for r in range(4)]
    other = bench.start("communicator(); wait_for_monitor()", MASTER_PORT="1")
    for rank in first + [other]:
        rank.communicate(timeout=60)
        assert rank.returncode == 0
    hellos = bench.events("hello")
    assert len(hellos) == 5
    monitors = {hello["pid"]: hello["monitor"] for hello in hellos}
    assert len({monitors[rank.pid] for rank in first}) == 1
    assert monitors[other.pid] not in {monitors[rank.pid] for rank in first}


def test_a_killed_monitor_is_replaced(bench):
    out, err = bench.run("""
        c = communicator()
        for n in range(1, 4):
            wait_for_monitor(n)
            if n < 3: os.kill(monitors()[-1], 9)
        all_reduce(c, stream())
        time.sleep(0.2)
        print("fine")
    """)
    assert out == "fine\n"
    assert len({hello["monitor"] for hello in bench.events("hello")}) == 3
    assert err.count("dshang:") == 1 and "started again" in err
    assert bench.image().call_head == 1


def test_a_refusal_is_said_once_and_taken(bench):
    out, err = bench.run("communicator(); time.sleep(1); print('fine')", FAKE_MONITOR="refuse")
    assert out == "fine\n"
    assert err.count("dshang:") == 1 and "not wanted here" in err
    assert len(bench.events("started")) == 1


def test_a_monitor_in_its_last_seconds_is_asked_again(bench):
    _, err = bench.run("communicator(); wait_for_monitor()", FAKE_MONITOR="busy-once")
    assert len(bench.events("refused")) == 1 and len(bench.events("hello")) == 1 and err == ""


def test_stacks_are_written_when_asked(bench):
    bench.run("communicator(); wait_for_monitor(); time.sleep(1.5)", FAKE_MONITOR="stacks")
    assert bench.image().stack_head >= 1


def test_no_monitor_program(bench):
    out, err = bench.run("c = communicator(); time.sleep(0.5); all_reduce(c, stream()); print('fine')", DSHANG_MONITOR=None)
    assert out == "fine\n"
    assert err.count("dshang:") == 1 and "no monitor" in err


def test_a_monitor_that_cannot_be_started(bench):
    out, err = bench.run("communicator(); time.sleep(0.5); print('fine')", DSHANG_MONITOR="/no/such/program")
    assert out == "fine\n"
    assert err.count("dshang:") == 1 and "/no/such/program" in err


def test_a_relative_library_finds_its_program_from_elsewhere(bench):
    (bench.folder / "dshang").symlink_to(bench.monitor)
    preload = "./libdshang.so " + bench.environment(preload=False)["LD_PRELOAD"]
    bench.run("os.chdir('/'); communicator(); wait_for_monitor()", DSHANG_MONITOR=None, LD_PRELOAD=preload)
    assert bench.events("hello")
