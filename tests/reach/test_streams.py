"""Capture and replay, communicators that become ready in the background, several members in one process."""
import json

from reach_job import said


def test_a_graph_is_recorded_at_its_capture_and_its_replays_are_counted(job):
    _, err = job.run("""
        process = Gpu()
        comm, stream = process.communicator(), process.stream()
        process.all_reduce(comm, stream)
        address = process.malloc(4000)
        check(process.cudaStreamBeginCapture(stream, 0))
        for _ in range(2):
            check(process.ncclAllReduce(address, address, 500, 7, 0, comm, stream))
        graph, ready = POINTER(), POINTER()
        check(process.cudaStreamEndCapture(stream, ctypes.byref(graph)))
        check(process.cudaGraphInstantiate(ctypes.byref(ready), graph, 0))
        for _ in range(5):
            check(process.cudaGraphLaunch(ready, stream))
        process.all_reduce(comm, stream)
        process.sync(stream)
        time.sleep(0.3)
    """)
    assert said(err) == []
    process, = job.records()
    assert process.ops() == ["all_reduce"] * 4
    assert [call.captured for call in process.calls] == [False, True, True, False]
    assert ["done" in call.pairs for call in process.calls] == [True, False, False, True]
    assert process.process["graph_launches"] == "5"


def test_ranks_that_replay_graphs_advance(job):
    """Nothing is recorded of them for longer than the stall threshold, and their hosts hardly do anything."""
    results = job.run_ranks("""
        process = Gpu()
        comm, stream, address = process.meet(), process.stream(), process.malloc(4000)
        process.all_reduce(comm, stream)
        check(process.cudaStreamBeginCapture(stream, 0))
        check(process.ncclAllReduce(address, address, 500, 7, 0, comm, stream))
        graph, ready = POINTER(), POINTER()
        check(process.cudaStreamEndCapture(stream, ctypes.byref(graph)))
        check(process.cudaGraphInstantiate(ctypes.byref(ready), graph, 0))
        for _ in range(35):
            check(process.cudaGraphLaunch(ready, stream))
            time.sleep(0.1)
        process.sync(stream)
    """, world=2, DSHANG_STALL_AFTER="1")
    assert [said(err) for _, err in results] == [[], []]
    assert [process.process["graph_launches"] for process in job.records()] == ["35", "35"]
    assert json.loads((job.dir / "report.json").read_text())["findings"] == []


def test_non_blocking_communicators(job):
    """The handle comes at once or late, ready when NCCL says so; calls of two ranks on it belong together."""
    results = job.run_ranks("""
        process, rank = Gpu(), int(os.environ["RANK"])
        path = os.path.join(os.environ["TMPDIR"], "id")
        if rank == 0:
            time.sleep(0.3)
            with open(path + ".new", "wb") as file: file.write(bytes(process.unique_id()))
            os.rename(path + ".new", path)
        wait_for(lambda: os.path.exists(path))
        unique = UniqueId.from_buffer_copy(open(path, "rb").read())
        check(process.cudaSetDevice(rank))
        if rank == 1: time.sleep(0.5)
        comm, state, states = POINTER(), INT(-1), []
        check(process.ncclCommInitRankConfig(ctypes.byref(comm), 2, unique, rank, ctypes.byref(Config(0))), (0, 7))
        def ready():
            check(process.ncclCommGetAsyncError(comm, ctypes.byref(state)))
            states.append(state.value)
            return state.value == 0
        wait_for(ready)
        stream, address = process.stream(), process.malloc(4000)
        for _ in range(3):
            result = check(process.ncclAllReduce(address, address, 1000, 7, 0, comm, stream), (0, 7))
            wait_for(ready)
        process.sync(stream)
        time.sleep(0.3)
        print(states[0])
    """, world=2)
    assert results[0][0] == "7\n"               # rank 0 waited for the other one
    processes = job.records()
    assert [process.rank for process in processes] == [0, 1]
    assert len({process.comms[0]["id"] for process in processes}) == 1
    for process in processes:
        comm, = process.comms
        assert "ready" in comm and process.ops() == ["all_reduce"] * 3
        assert all("done" in call.pairs for call in process.calls)
    assert sum(len(said(err)) for _, err in results) == 0


def test_all_communicators_of_a_process(job):
    """ncclCommInitAll: two members in one process, their calls in one group."""
    _, err = job.run("""
        process = Gpu()
        comms, devices = (POINTER * 2)(), (INT * 2)(0, 1)
        check(process.ncclCommInitAll(comms, 2, devices))
        streams = []
        for device in range(2):
            check(process.cudaSetDevice(device))
            streams.append((process.stream(), process.malloc(4000)))
        for _ in range(3):
            check(process.ncclGroupStart())
            for comm, (stream, address) in zip(comms, streams):
                check(process.ncclAllReduce(address, address, 1000, 7, 0, comm, stream))
            check(process.ncclGroupEnd())
            time.sleep(0.5)
        for device, (stream, _) in enumerate(streams):
            check(process.cudaSetDevice(device))
            process.sync(stream)
    """, RANK=None, WORLD_SIZE=None)
    assert said(err) == []
    process, = job.records()
    assert len(process.comms) == 2 and len({comm["id"] for comm in process.comms}) == 1
    assert sorted(call.comm for call in process.calls) == ["c0"] * 3 + ["c1"] * 3
    # The first call on a device that is not the current one has no marks yet: its progress is unknown.
    assert ["done" in call.pairs for call in process.calls][2:] == [True] * 4


THREADS = """
    import threading
    process = Gpu()
    problems = []
    def guarded(body, *arguments):
        def run():
            try: body(*arguments)
            except BaseException as problem: problems.append(repr(problem))
        return threading.Thread(target=run)
    def together(threads):
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert not problems, problems
"""


def test_a_thread_a_rank(job):
    _, err = job.run(THREADS + """
    unique, begin = process.unique_id(), threading.Barrier(6)
    def rank(number):
        check(process.cudaSetDevice(number))
        begin.wait()                    # the process is woken by one of them
        comm = process.communicator(6, number, unique, device=number)
        stream = process.stream()
        for _ in range(20): process.all_reduce(comm, stream, 100)
        process.sync(stream)
    together([guarded(rank, number) for number in range(6)])
    time.sleep(0.3)
    """, RANK=None, WORLD_SIZE=None)
    assert said(err) == []
    process, = job.records()
    assert len(process.comms) == 6 and len({comm["id"] for comm in process.comms}) == 1
    for comm in process.comms:
        calls = [call for call in process.calls if call.comm == comm["name"]]
        assert len(calls) == 20 and len({call.pairs.get("thread") for call in calls}) == 1
    assert len({call.pairs.get("thread") for call in process.calls}) == 6


def test_a_communicator_used_by_two_threads(job):
    """In turn, as NCCL asks for; the positions of its calls are without gap and without repetition."""
    _, err = job.run(THREADS + """
    comm, stream, turn = process.communicator(), process.stream(), threading.Lock()
    def work(count):
        for _ in range(100):
            with turn: process.all_reduce(comm, stream, count)
    together([guarded(work, 100), guarded(work, 200)])
    process.sync(stream)
    time.sleep(0.3)
    """)
    assert said(err) == []
    process, = job.records()
    assert len(process.comms) == 1 and len(process.calls) == 200
    assert [call.words[1] for call in process.calls].count("100") == 100
    assert not any("number" in call.pairs for call in process.calls)      # told where it is not the next one
    assert all("done" in call.pairs for call in process.calls)
