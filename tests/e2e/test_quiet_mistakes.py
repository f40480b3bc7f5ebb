"""Mistakes in data, models and order: each is told by its cause, and the repaired program is silent and learns."""
import re

import pytest
from jobs import LAUNCHERS, LONG, RANKS, SLACK, Job, line_of, losses, ways

PATIENCE = 240     # seconds until a job has begun to train, on a loaded machine


@pytest.fixture(params=LAUNCHERS if LONG else ["deepspeed"])
def launch(request):
    return LAUNCHERS[request.param]


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
    by_step = sorted(seen.items(), key=lambda item: int(item[0].split()[1]))
    means = [sum(numbers) / len(numbers) for _, numbers in by_step]
    assert len(means) >= steps, means
    return sum(means[-3:]) < sum(means[:3])


def test_loaders_of_different_length_are_told_before_they_stop_the_job(tmp_path, launch):
    with Job(launch("unequal_loader", "--mistake", "--steps", "300"), tmp_path, DSHANG_STALL_AFTER="10") as job:
        finding = job.wait_for("warning", PATIENCE, lambda: warning(job, "data-differs"))
        batches = dict(job.lines(r"^\[rank (\d+)\] (\d+) batches$"))
        steps = len(losses(job)) // RANKS
        short, others = int(batches["1"]), int(batches["0"])
        assert short < others and steps < short, (batches, steps)
        assert (finding["severity"], finding["certainty"], finding["step"]) == ("warning", "proven", short), finding
        if RANKS > 2:
            assert finding["suspects"] == [1], finding
        assert "rank 1 will stop at step %d, the others at step %d" % (short, others) in finding["summary"], finding
        assert "DistributedSampler" in everything(finding) and "drop_last" in everything(finding)
        assert job.living(), "the job ended by itself:\n" + job.log()[-2000:]


def test_equal_batches_on_all_ranks(tmp_path, launch):
    with Job(launch("same_batches", "--mistake"), tmp_path) as job:
        assert job.end() == 0, job.log()[-3000:]
        finding = job.wait_for("warning", 5 + SLACK, lambda: warning(job, "data-differs"))
        assert finding["severity"] == "warning" and finding["step"] == 0, finding
        assert re.search("same batches.*RandomSampler", finding["summary"]), finding
        assert "DistributedSampler" in everything(finding)
        assert [f["class"] for f in job.report()["findings"]] == ["data-differs"]


def test_models_of_different_structure(tmp_path, launch):
    with Job(launch("unequal_models", "--mistake"), tmp_path, DSHANG_STALL_AFTER="10") as job:
        job.wait_for("hang", PATIENCE, lambda: job.report() and job.report()["verdict"] == "hang")
        report = job.wait_for("cause", 10, lambda: warning(job, "parameters-differ") and job.report())
        first, second = [f for f in report["findings"] if f["resolved"] is None][:2]      # one rank may have come late
        kind = [first[key] for key in ("class", "severity", "certainty")]
        assert kind == ["parameters-differ", "error", "proven"], first
        what = r"head\.weight is \[10,32\] float32 on ranks? 0.* and \[9,32\] float32 on rank 1"
        assert re.search(what, first["summary"]), first
        assert (second["class"], second["consequence_of"]) == ("argument-mismatch", 0), second
        if RANKS > 2:
            assert first["suspects"] == [1], first
        assert job.living(), "the job ended by itself:\n" + job.log()[-2000:]


def test_torchs_backward_where_the_engines_is_needed(tmp_path, launch):
    with Job(launch("mixed_backward", "--mistake"), tmp_path, DSHANG_STALL_AFTER="10") as job:
        assert job.end() != 0
        first = job.wait_for("cause", 5 + SLACK, lambda: warning(job, "mixed-backward") and job.report())["findings"][0]
        assert (first["class"], first["suspects"], first["step"]) == ("mixed-backward", list(range(RANKS)), 4), first
        assert "mixed_backward.py:%d" % line_of("mixed_backward", "        loss.backward()") in everything(first), first
        assert "engine.backward(loss)" in first["fix"][0]
        dead = warning(job, "rank-dead")
        assert dead["consequence_of"] == 0, dead


def test_a_trace_that_keeps_breaking(tmp_path, launch):
    with Job(launch("changing_order", "--mistake", "--steps", "40"), tmp_path) as job:
        assert job.end() == 0, job.log()[-3000:]
        finding = job.wait_for("warning", 5 + SLACK, lambda: warning(job, "trace-cache-invalid"))
        assert (finding["severity"], finding["suspects"], finding["step"]) == ("warning", [], 3), finding
        assert "for_long came where the trace has for_short" in finding["summary"], finding
        assert "changing_order.py:%d" % line_of("changing_order", "x = self.for_long(x)") in everything(finding)
        assert re.search(r"complete trace takes 1 gathers", everything(finding)), finding
        assert "set_z3_leaf_modules" in everything(finding)
        assert [f["class"] for f in job.report()["findings"]] == ["trace-cache-invalid"]


def test_a_graph_that_changes(tmp_path, launch):
    with Job(launch("changing_depth", "--mistake", "--steps", "24"), tmp_path) as job:
        assert job.end() == 0, job.log()[-3000:]
        finding = job.wait_for("warning", 5 + SLACK, lambda: warning(job, "trace-cache-invalid"))
        assert (finding["severity"], finding["suspects"]) == ("warning", []), finding
        assert re.search(r"blocks\.\d came where the trace has blocks\.\d", everything(finding)), finding
        assert "changing_depth.py:%d" % line_of("changing_depth", "                x = block(x)") in everything(finding)
        assert [f["class"] for f in job.report()["findings"]] == ["trace-cache-invalid"]


FEW = ("unequal_loader", "same_batches", "unequal_models", "mixed_backward", "changing_order")
REPAIRED = (*FEW, "borrowed_weight", "changing_depth", "group_on_some_ranks", "group_on_some_ranks --bound", "idle_expert",
            "metric_on_rank_0", "saved_on_rank_0", "skipped_block", "tiled_head", "unequal_generation", "watched_on_rank_0",
            "weights_on_rank_0")
MADE = {"unequal_loader": 10}                                          # of 12 steps, at least


@pytest.mark.parametrize("name,launcher", ways(REPAIRED, [(name, "deepspeed") for name in FEW]))
def test_the_repaired_program_is_silent_and_learns(tmp_path, name, launcher):
    with Job(LAUNCHERS[launcher](*name.split(), "--steps", "12"), tmp_path) as job:
        assert job.end() == 0, job.log()[-3000:]
        job.wait_for("report", 10, lambda: job.report() and job.report()["verdict"] == "healthy")
        report = job.report()
        assert report["findings"] == [], report["findings"]
        assert learns(job, MADE.get(name, 12)), losses(job)
