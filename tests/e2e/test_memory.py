"""Memory that does not suffice: told by its cause, with what would help; the repaired program is silent and fits."""
import os
import re
import signal
import time

import async_io
import pytest
from jobs import LAUNCHERS, LONG, RANKS, SLACK, Job, line_of

GPU = "t4-16g"
COMMUNICATOR = "256 MiB"                  # SIMGPU_COMM_MB: what others than torch take, in a program with one communicator


def run(tmp_path, program, *arguments, launcher="torchrun", **settings):
    """(exit status, findings by class, what the job printed)"""
    with Job(LAUNCHERS[launcher](program, *arguments), tmp_path, numerics="int", gpu=GPU, **settings) as job:
        status = job.end()
        report = job.wait_for("report", 5 + SLACK, job.report)
        return status, {f["class"]: f for f in report["findings"]}, job.log()


def everything(finding):
    return "\n".join([finding["summary"], *finding["evidence"], *finding["fix"]])


def table(log):
    """{rank: verdict} of the table with which a dry run ends."""
    assert "memory that this run needed of " + GPU in log, log[-3000:]
    rows = {}
    row = r"^dshang: (\d+(?:-\d+)?(?:, \d+(?:-\d+)?)*) +\S.*?  (yes,.*|barely,.*|NO.*)$"
    for ranks, verdict in re.findall(row, log, re.M):
        for part in ranks.split(", "):
            first, _, last = part.partition("-")
            rows.update({rank: verdict for rank in range(int(first), int(last or first) + 1)})
    return rows


def taken_by_others(log):
    """What the lines of that table say of others than torch: each of them once."""
    rows = re.findall(r"^dshang: \d[\d, -]* +\S.*? [KMG]iB +(?:\S+ [KMG]iB|-) +(\S+ [KMG]?i?B)  ", log, re.M)
    assert rows, log[-2000:]
    return set(rows)


def test_a_rank_with_a_larger_batch_needs_more_memory(tmp_path):
    status, findings, log = run(tmp_path, "unequal_batches", "--mistake")
    assert status == 0, log[-3000:]
    finding = findings["memory-imbalance"]
    assert finding["suspects"] == [1] and "24 x 1024 x 1024" in finding["summary"], finding
    assert sorted(table(log)) == list(range(RANKS)) and all(row.startswith("yes") for row in table(log).values()), log[-2000:]


def test_an_emptied_cache_is_told_with_the_time_it_costs(tmp_path):
    milliseconds = 10
    status, findings, log = run(tmp_path, "emptied_cache", "--mistake", "--steps", "20",
                                SIMGPU_ALLOC_US=str(1000 * milliseconds))
    assert status == 0, log[-3000:]
    finding = findings["alloc-thrash"]
    assert finding["suspects"] == [1] and finding["severity"] == "warning", finding
    pairs, lost, whole = re.search(
        r"re-allocates (\d+) segments of device memory in each step, which takes (\S+) s of the (\S+) s of such a step",
        finding["summary"]).groups()
    assert float(whole) >= float(lost) >= 0.95 * 2 * int(pairs) * milliseconds / 1000, finding
    by_step = re.search(r"time lost in these calls: \S+ s in \d+ steps \((?:the newest: )?step (.*?)\)", everything(finding))
    for each in by_step[1].split(", "):
        step, seconds = re.fullmatch(r"(\d+): (\S+) s", each).groups()
        assert int(step) < 20 and float(seconds) >= milliseconds / 1000 * int(pairs), finding
    assert taken_by_others(log) == {COMMUNICATOR}, log[-2000:]        # not what was on its way back to the device


def test_another_process_on_the_card_is_named_with_what_it_takes(tmp_path):
    status, findings, log = run(tmp_path, "server_on_the_card", "--mistake")
    assert status != 0
    finding = findings["alloc-failed"]
    assert finding["suspects"] == [1], finding
    assert re.search(r"10\.5 GiB of its card are taken by another process \(process \d+ 10\.5 GiB\)", finding["summary"]), finding
    assert "nvidia-smi" in finding["fix"][0] and "gpu_memory_utilization" in everything(finding)


if LONG:
    def test_ranks_that_went_to_another_card_are_named(tmp_path):
        status, findings, log = run(tmp_path, "wrong_card", "--mistake")
        assert status != 0
        finding = findings["alloc-failed"]
        others = r"process \d+ \(rank [1-9]\d* of this job\) 6 GiB"
        assert finding["suspects"] == [0] and re.search("of its card are taken by .*" + others, finding["summary"]), finding
        assert "torch.cuda.set_device(local_rank)" in finding["fix"][0], finding


def test_what_all_ranks_catch_and_do_without_is_no_trouble(tmp_path):
    status, findings, log = run(tmp_path, "smaller_batch", "--steps", "6")
    assert status == 0 and "200 samples are too many" in log, log[-3000:]
    assert "[alloc-failed]" not in log, log[-3000:]                   # not even while it was not over
    assert all(finding["resolved"] is not None for finding in findings.values()), findings
    assert sorted(table(log)) == list(range(RANKS)), log[-2000:]
    assert all(re.match(r"yes, .* left; .* more were refused in step 0, and it went on", row) for row in table(log).values()), log[-2000:]


class ControlGroup:
    """A memory control group as a container sees it, with a stand-in for the kernel's OOM killer: tests may not make real
    ones everywhere.  The files of both versions of the interface lie in a folder, which the job sees mounted in their place."""

    def __init__(self, folder, limit):
        self.folder, self.limit = folder, limit
        (folder / "memory").mkdir(parents=True)
        for name in ("memory.max", "memory/memory.limit_in_bytes"):
            (folder / name).write_text("%d\n" % limit)
        self.count(0)

    def count(self, kills):
        (self.folder / "memory.events").write_text("low 0\nhigh 0\nmax %d\noom %d\noom_kill %d\n" % (kills, kills, kills))
        (self.folder / "memory" / "memory.oom_control").write_text(
            "oom_kill_disable 0\nunder_oom 0\noom_kill %d\n" % kills)

    def start(self):
        own = "-m" if os.geteuid() == 0 else "-rm"
        return ["unshare", own, "sh", "-c", 'mount --bind "$0" /sys/fs/cgroup && exec "$@"', str(self.folder)]

    def kill(self, pid):
        """As the kernel does: it counts before it sends the signal."""
        self.count(1)
        os.kill(pid, signal.SIGKILL)


def resident(pid):
    with open("/proc/%d/statm" % pid) as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def out_of_host_memory(tmp_path, program, says, past, grown, **settings):
    """The finding of rank 0, which is ended as the kernel does it, once it has `grown` by so many bytes since it said `says`
    and has not said `past`."""
    group = ControlGroup(tmp_path / "group", 3 << 30)
    with Job(LAUNCHERS["deepspeed"](program, "--mistake"), tmp_path, numerics="int", gpu=GPU, within=group.start(),
             **settings) as job:
        pid = int(job.wait_for(says, 240 + SLACK, lambda: job.lines(r"^\[rank 0\] %s, pid (\d+)$" % says))[0])
        before = resident(pid)
        while resident(pid) < before + grown:
            assert past not in job.log() and job.process.poll() is None, job.log()[-3000:]
            time.sleep(0.005)
        group.kill(pid)
        assert job.end() != 0
        report = job.wait_for("report", 5 + SLACK, job.report)
    findings = {f["class"]: f for f in report["findings"]}
    finding = findings["rank-dead"]
    assert "alloc-failed" not in findings and finding["suspects"] == [0] and finding["consequence_of"] is None, report["findings"]
    assert "ended by the kernel's OOM killer for want of host memory" in finding["summary"], finding
    assert "its control group may use 3 GiB" in everything(finding), finding
    return finding


def test_host_memory_that_ran_out_in_a_save_is_told_from_the_devices(tmp_path):
    finding = out_of_host_memory(tmp_path, "gathered_save", "saves", "[rank 0] saved", 40 << 20)     # the copy of the weights
    text = everything(finding)
    assert "it was in phase save" in text, finding
    assert re.search(r"save_16bit_model, .*gather the whole model \(about 130(\.\d)? MiB here\)", finding["fix"][0]), finding


def test_device_memory_that_runs_out_in_a_save_is_told_as_that(tmp_path):
    status, findings, log = run(tmp_path, "saved_with_the_frozen", "--mistake", launcher="deepspeed")
    assert status != 0 and "[rank 0] step 3 done" in log and "] saved\n" not in log, log[-3000:]
    finding = findings["alloc-failed"]
    assert finding["suspects"] == list(range(RANKS)) and finding["step"] == 3, finding
    line = line_of("saved_with_the_frozen", "with deepspeed.zero.GatheredParameters")
    assert finding["summary"].endswith(
        " in step 3, gather, at examples/saved_with_the_frozen.py:%d save_adapters, while saving" % line), finding
    text = everything(finding)
    assert "it failed in `save_adapters`: on the device, not in host memory" in text, finding
    assert "the whole model is 13.0 GiB" in text and "fragmentation" not in text, finding
    assert "what was trained, not the frozen weights" in finding["fix"][0], finding
    assert findings["rank-dead"]["consequence_of"] is not None, findings["rank-dead"]
    assert all(row.startswith("NO") for row in table(log).values()), log[-2000:]


if LONG:
    @pytest.mark.parametrize("program, launcher, steps", [
        ("unequal_batches", "torchrun", 12), ("kept_losses", "torchrun", 80), ("long_sample", "torchrun", 12),
        ("first_step_too_large", "deepspeed", 3), ("emptied_cache", "torchrun", 20), ("server_on_the_card", "torchrun", 12),
        ("wrong_card", "torchrun", 12), ("gathered_save", "deepspeed", 8),
        ("data_parallel", "torchrun", 8), ("fragmented", "torchrun", 10), ("nearly_full", "torchrun", 8),
        ("crowded_communicator", "torchrun", 8), ("kept_outputs", "torchrun", 4),
        ("saved_with_the_frozen", "deepspeed", 5), ("many_buffers", "deepspeed", 2)])
    def test_the_repaired_programs_are_silent_and_fit(tmp_path, program, launcher, steps):
        ops = async_io.settings() if program == "many_buffers" else {}
        status, findings, log = run(tmp_path, program, "--steps", str(steps), launcher=launcher, SIMGPU_ALLOC_US="500", **ops)
        assert status == 0 and not findings, (findings, log[-3000:])
        assert sorted(table(log)) == list(range(RANKS)) and all(row.startswith("yes") for row in table(log).values()), log[-2000:]
        if program in ("fragmented", "emptied_cache", "kept_losses"):
            assert taken_by_others(log) == {COMMUNICATOR}, log[-2000:]

    def test_host_memory_that_the_buffers_of_nvme_offload_take(tmp_path):
        finding = out_of_host_memory(tmp_path, "many_buffers", "starts", "step 0 done", 1 << 30,          # no model is there yet
                                     **async_io.settings())
        assert "offload" in everything(finding), finding
        assert "`buffer_count` buffers of `buffer_size` are pinned" in finding["fix"][0], finding

    def test_the_first_step_does_not_fit(tmp_path):
        status, findings, log = run(tmp_path, "first_step_too_large", "--mistake", launcher="deepspeed")
        assert status != 0
        finding = findings["alloc-failed"]
        assert finding["step"] == 0 and "the first step does not fit" in finding["summary"], finding
        assert re.search(r"estimated for 0\.0682 billion parameters, ZeRO stage 2, 16 bit, %d ranks" % RANKS, everything(finding))
        assert "switches nothing on by itself" in everything(finding), finding
        assert re.search(r"activation checkpointing: fits if no more than \d+ %", finding["fix"][0]), finding
        assert any(row.startswith("NO") for row in table(log).values()), log[-2000:]

    def test_a_longer_sample_after_many_steps(tmp_path):
        status, findings, log = run(tmp_path, "long_sample", "--mistake", "--steps", "20")
        assert status != 0
        finding = findings["alloc-failed"]
        assert (finding["step"], finding["suspects"]) == (18, [1]), finding
        assert "its batch is 8 x 16384 x 1024, usually 8 x 1024 x 1024" in finding["summary"], finding
        assert "cutoff_len" in everything(finding)

    def test_memory_that_grows_is_told_long_before_it_is_used_up(tmp_path):
        status, findings, log = run(tmp_path, "kept_losses", "--mistake", "--steps", "1000")
        assert status != 0
        finding, failure = findings["memory-creep"], findings["alloc-failed"]
        told = re.search(r"^dshang: WARNING \[memory-creep\].*runs out in step (\d+)", log, re.M)
        assert told and abs(int(told[1]) - failure["step"]) <= 0.1 * failure["step"], (told, failure["step"])
        assert re.search(r"grows by \d+(\.\d+)? MiB a step", finding["summary"]), finding

    def test_an_evaluation_that_keeps_its_outputs_is_told_from_a_training_step(tmp_path):
        status, findings, log = run(tmp_path, "kept_outputs", "--mistake", "--steps", "4")
        assert status != 0
        finding = findings["alloc-failed"]
        assert finding["summary"].endswith(", in an evaluation"), finding
        assert "list of outputs" in finding["fix"][0] and finding["suspects"] == list(range(RANKS)), finding

    def test_data_parallel_works_on_all_cards_and_gathers_on_the_first(tmp_path):
        status, findings, log = run(tmp_path, "data_parallel", "--mistake")
        assert status != 0
        finding = findings["alloc-failed"]
        assert "DataParallel" in finding["fix"][0] and "DistributedDataParallel" in finding["fix"][0], finding

    def test_pieces_that_are_too_small_are_told(tmp_path):
        status, findings, log = run(tmp_path, "fragmented", "--mistake", SIMGPU_ALLOC_US="50000")
        assert status != 0
        finding = findings["alloc-failed"]
        asked, unused = re.search(r"could not allocate (\S+) GiB .*: (\S+) GiB of its allocator are not in use, in pieces",
                                  finding["summary"]).groups()
        assert finding["suspects"] == list(range(RANKS)) and float(unused) > float(asked), finding
        assert "expandable_segments:True" in finding["fix"][0], finding
        assert taken_by_others(log) == {COMMUNICATOR}, log[-2000:]

    def test_a_step_that_nearly_fills_the_card_is_told_once_for_all_ranks(tmp_path):
        status, findings, log = run(tmp_path, "nearly_full", "--mistake")
        assert status == 0, log[-3000:]
        finding = findings["memory-pressure"]
        assert finding["suspects"] == list(range(RANKS)) and "close to the end of device memory" in finding["summary"], finding
        assert re.search(r"batch \d+ x 1024 x 1024", everything(finding)), finding
        assert all(row.startswith(("yes", "barely")) for row in table(log).values()), log[-2000:]

    def test_a_communicator_for_which_no_memory_is_left_is_told(tmp_path):
        status, findings, log = run(tmp_path, "crowded_communicator", "--mistake")
        assert status != 0
        finding = findings["memory-pressure"]
        assert finding["suspects"] == list(range(RANKS)) and finding["severity"] == "error", finding
        assert re.search(r"new communicator at \d+(\.\d+)? MiB of free device memory .*its creation failed", finding["summary"]), finding
        assert "Create and warm up communicators early" in finding["fix"][0], finding
        assert findings["rank-dead"]["consequence_of"] is not None, findings["rank-dead"]
