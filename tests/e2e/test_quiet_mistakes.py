"""Mistakes that do not stop a job at once: dshang warns while it still runs, and the repaired program is silent and learns."""
import re

import pytest
from jobs import RANKS, SLACK, Job, deepspeed, losses

PATIENCE = 240     # seconds until a job has begun to train, on a loaded machine


def warning(job, kind):
    report = job.report()
    return next((f for f in report["findings"] if f["class"] == kind), None) if report else None


def everything(finding):
    return "\n".join([finding["summary"], *finding["evidence"], *finding["fix"]])


def learns(job, steps):
    """The mean loss of all ranks over the last steps is below that over the first."""
    seen = {what: [] for _, what in losses(job)}
    for (_, what), number in losses(job).items():
        seen[what].append(float(number))
    means = [sum(numbers) / len(numbers) for _, numbers in sorted(seen.items(), key=lambda item: int(item[0].split()[1]))]
    assert len(means) >= steps, means
    return sum(means[-3:]) < sum(means[:3])


def test_loaders_of_different_length_are_told_before_they_stop_the_job(tmp_path):
    with Job(deepspeed("unequal_loader", "--mistake", "--steps", "300"), tmp_path, DSHANG_STALL_AFTER="10") as job:
        finding = job.wait_for("warning", PATIENCE, lambda: warning(job, "data-differs"))
        batches = dict(job.lines(r"^\[rank (\d+)\] (\d+) batches$"))
        steps = len(losses(job)) // RANKS
        short, others = int(batches["1"]), int(batches["0"])
        assert short < others and steps < short, (batches, steps)
        assert finding["severity"] == "warning" and finding["certainty"] == "proven" and finding["step"] == short, finding
        if RANKS > 2:
            assert finding["suspects"] == [1], finding
        assert re.search(r"rank 1 will stop at step %d, the others at step %d" % (short, others), finding["summary"]), finding
        assert "DistributedSampler" in everything(finding) and "drop_last" in everything(finding)
        assert job.living(), "the job ended by itself:\n" + job.log()[-2000:]


def test_equal_batches_on_all_ranks(tmp_path):
    with Job(deepspeed("same_batches", "--mistake"), tmp_path) as job:
        assert job.end() == 0, job.log()[-3000:]
        finding = job.wait_for("warning", 5 + SLACK, lambda: warning(job, "data-differs"))
        assert finding["severity"] == "warning" and finding["step"] == 0, finding
        assert re.search("same batches.*RandomSampler", finding["summary"]), finding
        assert "DistributedSampler" in everything(finding)
        assert [f["class"] for f in job.report()["findings"]] == ["data-differs"]


REPAIRED = {"unequal_loader": 11, "same_batches": 12}      # steps that it makes of 12


@pytest.mark.parametrize("name", REPAIRED)
def test_the_repaired_program_is_silent_and_learns(tmp_path, name):
    with Job(deepspeed(name, "--steps", "12"), tmp_path) as job:
        assert job.end() == 0, job.log()[-3000:]
        report = job.wait_for("report", 10, lambda: job.report() if job.report() and job.report()["verdict"] == "healthy" else None)
        assert report["findings"] == [], report["findings"]
        assert learns(job, REPAIRED[name] - 1), losses(job)
