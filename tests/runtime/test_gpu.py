"""GPU progress and memory as a rank records them, on the simulated GPU."""
import subprocess

from flight_image import DONE, MARKED, STARTED, UNKNOWN

OUT_OF_MEMORY = 2


def test_calls_are_seen_to_finish(bench):
    bench.run("""
        c, s = communicator(), stream()
        for _ in range(5): all_reduce(c, s)
        process.cudaStreamSynchronize(s)
        wait_for_monitor()
    """)
    flags = bench.image().call_flags()
    assert len(flags) == 5 and all(f & MARKED and f & STARTED and f & DONE for f in flags)
    assert bench.image().poll_ns > bench.image().start_ns and bench.image().poll_stuck_ns == 0
    facts = bench.image().facts()
    assert facts["version.cuda_driver"].count(".") == 1 and facts["version.cuda_runtime"].count(".") == 1
    assert facts["version.nccl"].count(".") == 2


def test_a_call_behind_other_work_has_not_started(bench):
    rank = bench.start("""
        import threading
        gate = threading.Event()
        hold = CALLBACK(lambda _: gate.wait())
        c, s, t = communicator(), stream(), stream()
        process.cudaLaunchHostFunc(s, hold, None)
        all_reduce(c, s)
        wait_for_monitor()
        print("held", flush=True)
        input()
        gate.set()
        process.cudaStreamSynchronize(s)
        time.sleep(0.2)
        print("released", flush=True)
        input()
    """, stdin=subprocess.PIPE)
    assert rank.stdout.readline() == "held\n"
    flags, = bench.image(rank.pid).call_flags()
    assert flags & MARKED and not flags & (STARTED | DONE | UNKNOWN)
    rank.stdin.write("\n")
    rank.stdin.flush()
    assert rank.stdout.readline() == "released\n"
    bench.wait(lambda: bench.image(rank.pid).call_flags()[0] & DONE)
    rank.communicate("\n", timeout=60)


def test_marks_switched_off(bench):
    bench.run("c, s = communicator(), stream(); all_reduce(c, s); process.cudaStreamSynchronize(s); wait_for_monitor()",
              DSHANG_GPU_MARKS="0")
    flags, = bench.image().call_flags()
    assert flags & UNKNOWN and not flags & (MARKED | DONE)


def test_end_marks_alone(bench):
    bench.run("c, s = communicator(), stream(); all_reduce(c, s); process.cudaStreamSynchronize(s); wait_for_monitor()",
              DSHANG_START_MARK="0")
    flags, = bench.image().call_flags()
    assert flags & DONE and not flags & STARTED


def test_memory_of_steps(bench):
    bench.run("""
        process.dshang_step.argtypes = [ctypes.c_int64]
        _, kept = malloc(100 << 20)
        communicator()
        for n in range(3):
            process.dshang_step(n)
            _, other = malloc((n + 1) << 20)
            process.cudaFree(other)
        process.dshang_step(3)
        wait_for_monitor()
    """)
    steps = {step["step"]: step for step in bench.image().memory_steps()}
    for n in range(3):
        assert steps[n]["live"]["device"] == 100 << 20
        assert steps[n]["peak"]["device"] == (100 + n + 1) << 20
        assert (steps[n]["allocations"], steps[n]["frees"]) == (1, 1)


def test_a_failed_allocation_and_the_allocators_retry(bench):
    bench.run("""
        communicator()
        _, half = malloc(600 << 20)
        assert malloc(700 << 20)[0] == 2
        process.cudaFree(half)
        assert malloc(700 << 20)[0] == 0
        assert malloc(5 << 30)[0] == 2
        process.cudaGetLastError()
        wait_for_monitor()
    """, SIMGPU_VRAM_BYTES=str(1 << 30))
    first, second = bench.image().alloc_failures()
    assert first["size"] == 700 << 20 and first["retried"] == 1 and 0 < first["free"] < 700 << 20
    assert first["result"] == OUT_OF_MEMORY and first["total"] == 1 << 30
    assert second["size"] == 5 << 30 and second["retried"] == 0
    assert (bench.image().failures, bench.image().retries) == (2, 1)
