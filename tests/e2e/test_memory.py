"""Memory that does not suffice: told by its cause, with what would help; the repaired program is silent and fits."""
import re

import pytest
from jobs import LAUNCHERS, LONG, RANKS, SLACK, Job

GPU = "t4-16g"


def run(tmp_path, program, *arguments, launcher="torchrun"):
    """(exit status, findings by class, what the job printed)"""
    with Job(LAUNCHERS[launcher](program, *arguments), tmp_path, numerics="int", gpu=GPU) as job:
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


def test_a_rank_with_a_larger_batch_needs_more_memory(tmp_path):
    status, findings, log = run(tmp_path, "unequal_batches", "--mistake")
    assert status == 0, log[-3000:]
    finding = findings["memory-imbalance"]
    assert finding["suspects"] == [1] and "24 x 1024 x 1024" in finding["summary"], finding
    assert sorted(table(log)) == list(range(RANKS)) and all(row.startswith("yes") for row in table(log).values()), log[-2000:]


if LONG:
    @pytest.mark.parametrize("program, launcher, steps", [
        ("unequal_batches", "torchrun", 12), ("kept_losses", "torchrun", 80), ("long_sample", "torchrun", 12),
        ("first_step_too_large", "deepspeed", 3)])
    def test_the_repaired_programs_are_silent_and_fit(tmp_path, program, launcher, steps):
        status, findings, log = run(tmp_path, program, "--steps", str(steps), launcher=launcher)
        assert status == 0 and not findings, (findings, log[-3000:])
        assert sorted(table(log)) == list(range(RANKS)) and all(row.startswith("yes") for row in table(log).values()), log[-2000:]

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
