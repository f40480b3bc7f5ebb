"""Children of a rank: inert, harmless, and awake again only with a communicator of their own."""
import textwrap


def test_a_forked_child_is_inert(bench):
    out, err = bench.run("""
        c = communicator()
        s = stream()
        all_reduce(c, s)
        wait_for_monitor()
        child = os.fork()
        if child == 0:
            left = [t for t in descriptors().values() if "dshang" in t]
            malloc(1 << 20)
            quiet = "dshang" not in threads() and not left
            os._exit(7 if quiet else 8)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        time.sleep(0.2)
        all_reduce(c, s)
        time.sleep(0.2)
    """)
    assert out == "7\n" and err == ""
    assert len(bench.events("hello")) == 1
    image = bench.image()
    assert image.call_head == 2 and image.ending == "exit" and image.ending_code == 0


def test_a_child_that_runs_to_its_end_writes_no_ending_of_the_parent(bench):
    rank = bench.start("""
        communicator()
        wait_for_monitor()
        import sys, subprocess
        if os.fork() == 0: sys.exit(5)
        os.wait()
        if os.fork() == 0: os.kill(os.getpid(), 15)
        print(os.WTERMSIG(os.wait()[1]))
        if os.fork() == 0: os.abort()
        print(os.WTERMSIG(os.wait()[1]))
        try: subprocess.run(["/no/such/program"], close_fds=False)     # vfork and a failing exec
        except FileNotFoundError: pass
        time.sleep(0.3)
        print("ready", flush=True)
        time.sleep(60)
    """)
    assert [rank.stdout.readline() for _ in range(3)] == ["15\n", "6\n", "ready\n"]
    assert bench.image(rank.pid).ending is None
    rank.kill()
    rank.wait()
    bench.wait(lambda: bench.events("gone"))
    assert bench.image(rank.pid).ending is None


def test_the_end_of_the_rank_is_seen_while_a_child_lives(bench):
    """A data-loader worker that outlives its rank must not hold the connection or the memory."""
    rank = bench.start("""
        communicator()
        wait_for_monitor()
        if os.fork() == 0:
            os.close(1); os.close(2)
            time.sleep(4)
            os._exit(0)
        time.sleep(0.1)
    """)
    rank.communicate(timeout=60)
    bench.wait(lambda: bench.events("gone"), seconds=2)


def test_a_fork_started_rank_wakes_at_its_own_communicator(bench):
    out, _ = bench.run("""
        process.dshang_torch_distributed_imported()     # the parent wakes; its CUDA would be useless in a child
        wait_for_monitor()
        child = os.fork()
        if child == 0:
            os.environ["RANK"] = "1"
            c = communicator()
            all_reduce(c, stream())
            wait_for_monitor()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print(child)
    """, WORLD_SIZE="2")
    child = int(out)
    hellos = bench.events("hello")
    assert {hello["pid"]: hello["rank"] for hello in hellos} == {bench.pid: 0, child: 1}
    assert bench.image(child).call_head == 1
    assert bench.image().call_head == 0


def test_ranks_forked_by_a_sleeping_parent_wake_like_any_other(bench):
    out, _ = bench.run("""
        child = os.fork()
        if child == 0:
            process.cudaSetDevice(0)
            wait_for_monitor()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print(child)
    """)
    assert [hello["pid"] for hello in bench.events("hello")] == [int(out)]


def test_a_program_started_by_the_rank_is_a_process_of_its_own(bench):
    out, _ = bench.run("""
        import subprocess, sys
        communicator()
        wait_for_monitor()
        env = dict(os.environ); env.pop("RANK")
        print(subprocess.run([sys.executable, "-c", "from little import *; print(threads(), descriptors())"], env=env,
                             capture_output=True, text=True).stdout)
    """)
    assert "dshang" not in out
