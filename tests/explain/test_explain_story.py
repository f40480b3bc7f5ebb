"""What happened, in order: causes before consequences, ranks and nodes together, which rank differs."""
import pytest

from explain_cli import explain, findings, ids, report
from test_explain_entries import DEEPSPEED, INIT, OOM, timeout

CLOSED = "[rank{}]: RuntimeError: [pair.cc:537] Connection closed by peer [127.0.0.1]:4\n"


def trace(rank, error, frame="train.py"):
    prefix = f"[rank{rank}]: " if rank is not None else ""
    return "".join(f"{prefix}{line}\n" for line in ("Traceback (most recent call last):", f'  File "{frame}", line 8, in main', "    go()", error))


def summary(text, entry):
    return next(one["summary"] for one in findings("-", text=text) if one["id"] == entry)


def test_the_out_of_memory_before_the_time_outs_it_caused():
    log = timeout(0) + timeout(1) + "[rank3]: " + OOM + "\n" + CLOSED.format(2)
    assert ids(log) == ["12.6-4", "X-46", "E-07"]
    told = explain(text=log).stdout
    assert told.index("WILL FAIL [12.6-4]") < told.index("THEN [X-46]")


def test_the_first_traceback_of_the_first_rank_that_failed_before_the_rest():
    log = trace(2, "ValueError: odd") + trace(0, "ValueError: optimizer got an empty parameter list") + CLOSED.format(1)
    told = explain(text=log).stdout
    assert told.index("UNKNOWN ERROR ValueError: odd") < told.index("WILL FAIL [X-42]") < told.index("[E-07]")
    turned = trace(0, "ValueError: optimizer got an empty parameter list") + trace(2, "ValueError: odd")
    told = explain(text=turned).stdout
    assert told.index("WILL FAIL [X-42]") < told.index("UNKNOWN ERROR ValueError: odd")


def test_an_unknown_error_stands_before_the_time_outs_it_caused():
    log = timeout(0) + timeout(1) + trace(2, "ValueError: odd")
    told = explain(text=log).stdout
    assert told.index("UNKNOWN ERROR ValueError: odd") < told.index("THEN [X-46]")


def test_tracebacks_of_mixed_ranks_are_put_together():
    lines = [trace(rank, error, frame).splitlines(keepends=True) for rank, error, frame in (
        (0, "TypeError: expected str, bytes or os.PathLike object, not NoneType", "/x/deepspeed/runtime/zero/stage3.py"),
        (1, "TypeError: expected str, bytes or os.PathLike object, not NoneType", "data.py"))]
    told = report("-", text="".join(line for pair in zip(*lines) for line in pair))
    assert [(one["id"], one["where"]) for one in told["findings"]] == [("X-25", "standard input:7, rank 0")]
    assert [one["where"] for one in told["unknown"]] == ["standard input:8, rank 1"]


def test_repeats_are_one_finding_with_their_ranks_and_nodes():
    lines = "".join(f"worker-{rank // 4}: [rank{rank}]: {OOM}\n" for rank in range(8))
    found = findings("-", text=lines)
    assert [one["id"] for one in found] == ["12.6-1"]
    assert found[0]["where"] == "standard input:1, ranks 0-7 (worker-0, worker-1), 8 lines"
    local = "".join(f"worker-{node}: [default{rank}]:{OOM}\n" for node in range(2) for rank in range(2))
    assert findings("-", text=local)[0]["where"] == "standard input:1, local ranks 0, 1 of worker-0, local ranks 0, 1 of worker-1, 4 lines"


def test_logs_of_single_ranks_as_torchrun_writes_them(tmp_path):
    for rank in range(2):
        folder = tmp_path / "attempt_0" / str(rank)
        folder.mkdir(parents=True)
        (folder / "stderr.log").write_text(OOM + "\n" if rank else "step 400 loss: 2.0\n")
    found = findings(tmp_path / "attempt_0/0/stderr.log", tmp_path / "attempt_0/1/stderr.log")
    assert [one["id"] for one in found] == ["12.6-4"] or [one["id"] for one in found] == ["12.6-2"]
    assert "1/stderr.log:1, local rank 1" in found[0]["where"] and "400 steps" in found[0]["summary"]


def test_equal_calls_that_timed_out_name_the_rank_that_did_not_come():
    text = summary("world size: 4\n" + timeout(0) + timeout(1) + timeout(3), "X-46")
    assert "ranks 0, 1, 3 waited in ALLREDUCE #54 (1 -> 1) for 600 s" in text and "rank 2 did not come to it" in text
    assert "all in the same call" in summary("world size: 2\n" + timeout(0) + timeout(1), "X-46")


@pytest.mark.parametrize("odd, says", [
    (dict(op="ALLGATHER"), "rank 2 in ALLGATHER #54 (1 -> 1)"),
    (dict(numel=75264), "rank 2 in ALLREDUCE #54 (75264 -> 75264)"),
    (dict(seq=53), "rank 2 in ALLREDUCE #53 (1 -> 1)"),
])
def test_different_calls_that_timed_out_name_the_rank_that_differs(odd, says):
    log = timeout(0) + timeout(1) + timeout(3) + timeout(2, **odd)
    assert ids(log) == ["E-01"]
    text = summary(log, "E-01")
    assert "ranks 0, 1, 3 in ALLREDUCE #54 (1 -> 1)" in text and says in text and "rank 2 differs from the majority" in text


def test_two_ranks_have_no_majority():
    text = summary(timeout(0) + timeout(1, op="BROADCAST"), "E-01")
    assert "No majority" in text and "differs" not in text


def test_calls_of_different_groups_are_not_compared():
    log = timeout(0, 54, group="0(default_pg)") + timeout(1, 54, group="0(default_pg)") + timeout(2, 7, "ALLGATHER", group="9")
    assert ids(log) == ["X-46"]
    one_group = timeout(0, 54, group="0(default_pg)") + timeout(1, 7, "ALLGATHER", group="0(default_pg)")
    assert ids(one_group) == ["E-01"]


def test_newest_wording_of_the_watchdog_is_read():
    line = ("[rank{0}]:[E1130 13:04:41.4 ProcessGroupNCCL.cpp:741] [PG GUID {1} Rank 1] Watchdog caught collective operation timeout: "
            "WorkNCCL(SeqNum={2}, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=15000) ran for 15034 milliseconds before timing out.\n")
    assert ids(line.format(0, "0(default_pg)", 5) + line.format(1, "7", 9)) == ["X-46"]
    assert ids(line.format(0, "0(default_pg)", 5) + line.format(1, "0(default_pg)", 9)) == ["E-01"]


def test_a_world_size_in_a_formula_is_none():
    log = "AssertionError: ... gradient_acc_step * world_size 32 != 4 * 2 * 8\n"
    assert "world size" not in explain(text=log).stdout.splitlines()[0]
    assert "world size 32" in explain(text="world_size=32\n").stdout


def test_a_rank_that_came_when_the_others_were_gone_is_the_one_they_waited_for():
    late = timeout(1, seq=56).replace("10:00:00", "10:10:30")
    text = summary("world size: 3\n" + timeout(0) + timeout(2) + late, "X-46")
    assert "ranks 0, 2 waited" in text and "rank 1 did not come to it" in text
    soon = timeout(1, seq=56).replace("10:00:00", "10:00:09")
    assert ids(timeout(0) + timeout(2) + soon) == ["E-01"]


def test_old_wording_of_the_watchdog_is_read():
    line = "[E ProcessGroupNCCL.cpp:821] [Rank {}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1756, OpType={}, TensorShape=[{}, 2], Timeout(ms)=1800000) ran for 1805 milliseconds before timing out.\n"
    text = summary(line.format(0, "ALLREDUCE", 1) + line.format(1, "ALLREDUCE", 1) + line.format(2, "ALLREDUCE", 5), "E-01")
    assert "ranks 0, 1 in ALLREDUCE #1756 ([1, 2])" in text and "rank 2 in ALLREDUCE #1756 ([5, 2])" in text


def test_what_nccl_chose_is_told():
    log = ("w0:9:9 [0] NCCL INFO NCCL version 2.30.7+cuda13.0\n" + INIT.format(0, 2) + INIT.format(1, 2)
           + "w0:9:9 [0] NCCL INFO Using network IB\n"
           + "w0:9:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n" * 2
           + "w0:9:9 [0] NCCL INFO 16 coll channels, 0 collnet channels, 16 nvls channels, 16 p2p channels\n"
           + "w0:9:9 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 2 cudaDev 0 busId 9b000 commId 0x5a - Init COMPLETE\n"
           + "w1:9:9 [0] NCCL INFO ncclCommInitRank comm 0x2 rank 1 nranks 2 cudaDev 0 busId 9b000 commId 0x5a - Init START\n")
    told = report("-", text=log)
    assert told["findings"] == []
    assert told["facts"] == [
        "NCCL 2.30.7+cuda13.0, 2 ranks on 2 nodes, network IB; channels: 2 NET/IB; 16 channels (rings) for collectives",
        "NCCL communicator 0x5a: rank 1 began to create it and did not finish"]


def test_what_was_raised_is_quoted_and_not_the_line_that_raises():
    log = ('Traceback (most recent call last):\n  File "/x/zero_to_fp32.py", line 8, in main\n'
           "    raise ValueError(f\"Unable to find 'latest' file at {path}\")\nValueError: Unable to find 'latest' file at out/latest\n")
    found = findings("-", text=log)
    assert [(one["id"], one["where"]) for one in found] == [("12.7-2", "standard input:4, 2 lines")]
    assert found[0]["summary"].endswith("ValueError: Unable to find 'latest' file at out/latest")


def test_an_error_explained_by_a_more_exact_one_is_left_out():
    log = DEEPSPEED + ("pydantic_core._pydantic_core.ValidationError: 1 validation error for DeepSpeedZeroConfig\nstage\n"
                       "  Extra inputs are not permitted [type=extra_forbidden, input_value=1, input_type=int]\n")
    assert ids(log) == ["X-22"]
    assert ids("w:1:2 [0] NCCL WARN Call to posix_fallocate failed : No space left on device\n"
               "DistBackendError: unhandled cuda error (run with NCCL_DEBUG=INFO for details)\n") == ["X-08"]


def test_a_healthy_log_with_everything_in_it_is_silent():
    log = ("[WARNING]  async_io requires the dev libaio .so object and headers but these were not found.\n" + INIT.format(0, 1)
           + "w0:9:9 [0] NCCL INFO NET/IB : No device found.\nw0:9:9 [0] NCCL INFO Using network Socket\n"
           + "w0:9:9 [0] NCCL INFO Channel 00 : 0[1] -> 1[2] via P2P/IPC\n"
           + "[INFO] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768\n"
           + "".join(f"{{'loss': {3 - i / 200}, 'grad_norm': {2 - i / 200}, 'learning_rate': 1e-05, 'epoch': {i / 100}}}\n" for i in range(200))
           + "[INFO] [launch.py:285:main] Process 4101 exits successfully.\n")
    told = report("-", text=log)
    assert told["findings"] == [] and told["unknown"] == [] and "training reached 200 reports" in told["facts"][0]


TORCHRUN_END = ("E1102 10:00:05.4 8898 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1) local_rank: {0} (pid: 11) of binary: /x/python\n"
                "W1102 10:00:05.3 8898 torch/distributed/elastic/multiprocessing/api.py:1028] Sending process 12 closing signal SIGTERM\n"
                "Root Cause (first observed failure):\n[0]:\n  rank      : {0} (local_rank: {0})\n  exitcode  : 1 (pid: 11)\n")
DEEPSPEED_END = ("[INFO] [launch.py:253:sigkill_handler] Killing subprocess 4101\n"
                 "[ERROR] [launch.py:259:sigkill_handler] ['python', '-u', 'train.py'] exits with return code = 1\n")


@pytest.mark.parametrize("end", [TORCHRUN_END.format(2), DEEPSPEED_END], ids=["torchrun", "deepspeed"])
def test_the_first_rank_out_of_memory_is_not_the_only_one_where_a_launcher_ended_the_others(end):
    job = "world_size 4\nworld size: 4\n[rank0]: loading\n"
    log = job + "  0%|          | 0/500 [00:00<?, ?it/s]\n[rank2]: " + OOM + "\n" + end
    assert ids(log) == ["12.6-1"] and "before the first step" in summary(log, "12.6-1")
    late = job + " 80%|####      | 400/500 [06:00<01:30,  1.1it/s]\n[rank2]: " + OOM + "\n" + end
    assert ids(late) == ["12.6-2"] and "after 400 steps" in summary(late, "12.6-2")
    # Near misses: the others ran on, waited until their time-out, or had done the same steps.
    assert ids(log.replace(end, "")) == ["12.6-4"]
    assert "12.6-4" in ids(timeout(0) + timeout(1) + log)
    assert ids("step 4 loss: 2.5\n" + log) == ["12.6-4"]


@pytest.mark.parametrize("line", [
    "[2026-11-02 10:00:01,100] [ERROR] [launch.py:325:sigkill_handler] ['python', '-u', 'train.py'] exits with return code = 2",
    "E1102 10:00:00.1 8 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1) local_rank: 1 (pid: 9) of binary: /x/python",
    "  exitcode  : -6 (pid: 8910)",
    "srun: error: node-2: task 3: Exited with exit code 1",
    "srun: error: node-2: tasks 0-2,5: Terminated",
    "pdsh@login: worker-2: ssh exited with exit code 127",
    "mpirun detected that one or more processes exited with non-zero status, thus causing",
    "mpirun noticed that process rank 1 with PID 7 on node n1 exited on signal 6 (Aborted).",
    '  File "/x/accelerate/commands/launch.py", line 3, in deepspeed_launcher\nsubprocess.CalledProcessError: Command \'[x]\' returned non-zero exit status 1.',
])
def test_a_rank_that_a_launcher_says_has_failed_is_an_unknown_error_where_nothing_says_why(line):
    told = explain(text="step 1 loss: 2\n" + line + "\n")
    assert told.returncode == 1 and "UNKNOWN ERROR a launcher says that a rank failed" in told.stdout
    assert "nothing that is known to be wrong" not in told.stdout
    shown = line.splitlines()[-1].strip()
    unknown = report("-", text=line + "\n")["unknown"]
    assert [one["traceback"] for one in unknown] == [[]]
    assert unknown[0]["summary"].endswith(shown), unknown
    # What is known, or a traceback, says more; what only slows a job does not.
    assert report("-", text=OOM + "\n" + line + "\n")["unknown"] == []
    traced = report("-", text=trace(2, "ValueError: odd") + line + "\n")["unknown"]
    assert traced[0]["summary"] == "ValueError: odd" and all(one["traceback"] for one in traced)
    slow = report("-", text="Setting accelerator to CPU. If you have GPU or other accelerator, we were unable to detect it\n" + line + "\n")
    assert [one["id"] for one in slow["findings"]] == ["X-43"] and len(slow["unknown"]) == 1


@pytest.mark.parametrize("line", [
    "[INFO] [launch.py:285:main] Process 4101 exits successfully.",
    "['python', 'evaluate.py'] exits with return code = 0",
    "  exitcode  : 0 (pid: 8910)",
    "srun: error: Unable to allocate resources",
    "srun: job 17 queued and waiting for resources",
    '  File "probe.py", line 3, in probe\nsubprocess.CalledProcessError: Command \'[x]\' returned non-zero exit status 1.',
])
def test_a_launcher_that_says_of_no_rank_that_it_failed_is_silent(line):
    told = report("-", text=line + "\n")
    assert told["findings"] == [] and told["unknown"] == []


def test_a_node_without_the_program_that_the_launcher_starts():
    log = "worker-2: bash: line 1: /opt/conda/bin/python: No such file or directory\npdsh@login: worker-2: ssh exited with exit code 127\n"
    told = report("-", text=log)
    assert [(one["id"], one["where"]) for one in told["findings"]] == [("E-20", "standard input:1, (worker-2)")]
    assert told["unknown"] == []


@pytest.mark.parametrize("prefix, ranks", [("[rank{}]: ", "ranks 0-3"), ("[default{}]:", "local ranks 0-3")])
def test_an_unknown_error_of_several_ranks_is_one_with_its_ranks(prefix, ranks):
    log = "".join(trace(rank, "ValueError: odd").replace(f"[rank{rank}]: ", prefix.format(rank)) for rank in range(4))
    other = trace(5, "ValueError: odd", frame="other.py")  # the same text from elsewhere is another error
    told = report("-", text=log + other)
    assert [one["where"] for one in told["unknown"]] == [f"standard input:4, {ranks}, 4 lines", "standard input:20, rank 5"]
    assert f"where: standard input:4, {ranks}, 4 lines" in explain(text=log).stdout


def test_values_that_disagree_are_quoted():
    log = ("ValueError: Please correct the following DeepSpeed config values that mismatch TrainingArguments values:\n"
           "- ds train_micro_batch_size_per_gpu=2 vs hf per_device_train_batch_size=4\n")
    found = findings("-", text=log)
    assert [one["id"] for one in found] == ["X-04"]
    assert found[0]["summary"].endswith(": - ds train_micro_batch_size_per_gpu=2 vs hf per_device_train_batch_size=4")


def test_a_missing_ninja_is_no_fault_of_the_compiler():
    log = ("RuntimeError: Ninja is required to load C++ extensions (pip install ninja to get it)\n\n"
           "The above exception was the direct cause of the following exception:\n\n"
           "RuntimeError: Unable to JIT load the cpu_adam op due to ninja not being installed.\n")
    found = findings("-", text=log)
    assert [one["id"] for one in found] == ["E-17"] and "pip install ninja" in found[0]["fix"][0]


@pytest.mark.parametrize("missing", ["rank 3", "ranks 2, 3"])
def test_the_rank_that_a_monitored_barrier_misses_is_named(missing):
    """Wherever rank 0 says it: behind many lines, and with the others' complaints before it."""
    others = trace(1, "RuntimeError: Rank 1 successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0. "
                   "Please check rank 0 logs for faulty rank.")
    behind = (" Original exception: \n[/x/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 5000ms for recv operation to complete\n")
    log = others + behind + "waiting\n" * 300 + trace(0, f"RuntimeError: [Rank 0]: {missing.capitalize()} failed to pass monitoredBarrier in 5000 ms") + behind
    told = report("-", text=log)
    assert [one["id"] for one in told["findings"]] == ["E-28"] and told["unknown"] == []
    assert told["findings"][0]["summary"].startswith(f"{missing} did not come to a barrier: ")
    assert told["findings"][0]["fix"][0] == f"Look at what {missing} did last."
    assert ids(others) == ["E-05"]


def test_a_rank_that_was_gone_before_a_monitored_barrier_is_named():
    missed = "[rank0]: RuntimeError: [Rank 0]: Rank 2 failed to pass monitoredBarrier in 5000 ms\n"
    found = findings("-", text=missed + CLOSED.format(0))
    assert [one["id"] for one in found] == ["E-07"]
    assert found[0]["summary"].startswith("rank 2 closed its connection before a barrier") and found[0]["fix"][0] == "Look at what rank 2 did last."
    # Another rank lost its connection to rank 0, which gave up.
    assert ids(missed + CLOSED.format(1)) == ["E-28"]


def test_an_operator_s_file_is_missing_because_its_build_failed():
    missing = "[rank1]: ImportError: /r/torch_extensions/cpu_adam/cpu_adam.so: cannot open shared object file: No such file or directory\n"
    assert ids("[rank0]: RuntimeError: Error building extension 'cpu_adam'\n" + missing) == ["X-13"]
    assert ids(missing) == ["E-25"]
