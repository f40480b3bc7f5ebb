"""Values that go wrong: each is told by its cause, and the repaired program is silent and learns."""
import math
import re

import pytest
from jobs import LAUNCHERS, RANKS, SLACK, Job, losses, ways


def kind(finding):
    return finding["class"], finding["severity"], finding["certainty"]


def says(finding, *patterns):
    text = "\n".join([finding["summary"], *finding["evidence"], *finding["fix"]])
    assert [pattern for pattern in patterns if not re.search(pattern, text)] == [], text


def weights_on_rank_0(finding, job):
    assert kind(finding) == ("parameters-differ", "error", "proven") and finding["suspects"] == [0]
    says(finding, r"different weights: head\.weight, head\.bias;", "2 of 52 replicated parameters")
    assert "before DistributedDataParallel" in finding["fix"][0]


def broken_batch(finding, job):
    assert kind(finding) == ("nan", "error", "proven") and finding["class_certainty"] == "proven"
    assert (finding["suspects"], finding["step"]) == ([1], 0)
    says(finding, r"the loss of rank 1 is nan from step 0 on: batch 0 of rank 1's loader holds 32 of 128 values .* field signal "
                  r"\(float32\[4,32\]\), sample 2", "the others followed from step 1", "the output of embed")


def first_bad(job):
    return min(int(what.split()[1]) for (_, what), number in losses(job).items() if not math.isfinite(float(number)))


def fp16_overflow(finding, job):
    assert kind(finding) == ("nan", "error", "proven") and finding["step"] == first_bad(job) > 10
    says(finding, r"in fp16, after \d+ finite losses", r"in the forward of step \d+ the output of block\.", '"bf16"')
    collapse = next(f for f in job.report()["findings"] if f["class"] == "loss-scale-collapse")
    assert collapse["consequence_of"] == 0


def shrinking_scale(finding, job):
    assert finding["class"] == "loss-scale-collapse" and finding["consequence_of"] is None
    says(finding, "fell from 16384 to", r"\d+ of \d+ steps were skipped", "bf16", "initial_scale_power")


def odd_sample(finding, job):
    assert kind(finding) == ("grad-norm-spike", "warning", "judged")
    assert (finding["step"], finding["suspects"]) == (24, [1])
    says(finding, "an odd sample on rank 1, whose loss was", "batch 24 of rank 1's loader", "gradients are not clipped",
         "gradient_clipping")


def high_rate(finding, job):
    assert finding["class"] == "grad-norm-spike" and finding["step"] >= 20 and finding["suspects"] == []
    says(finding, "stays high|keeps jumping", "learning rate 0.5")
    assert "learning rate" in finding["fix"][0]


def evaluated_in_fp16(finding, job):
    assert kind(finding) == ("nan", "error", "proven") and finding["step"] == 3
    says(finding, r"evaluation is \w+ on ranks? 0.*: evaluated in float16 \(autocast\), trained in bfloat16 \(autocast\)",
         "bf16_full_eval=True")


def token_ids(finding, job):
    assert finding["class"] == "nan" and (finding["suspects"], finding["step"]) == ([1], 3), finding
    says(finding, r"batch 3 of rank 1's loader holds ids from \d+ to 65 in field input_ids \(int64\[4,8\]\), sample 1",
         "largest embedding has 64 rows", "resize_token_embeddings")


def muon_on_the_head(finding, job):
    assert kind(finding) == ("nan", "error", "proven") and finding["step"] <= 10, finding
    says(finding, "Muon updates words.weight scores.weight", "`embed` or `lm_head`")


CAUSES = {"token_ids --mistake": token_ids, "muon_on_the_head --mistake --steps 12": muon_on_the_head,
          "weights_on_rank_0 --mistake": weights_on_rank_0, "broken_batch --mistake": broken_batch,
          "fp16_overflow --mistake --steps 34": fp16_overflow, "shrinking_scale --mistake --steps 24": shrinking_scale,
          "odd_sample --mistake --steps 36": odd_sample, "high_rate --mistake --steps 40": high_rate,
          "evaluated_in_fp16 --mistake": evaluated_in_fp16}
REPAIRED = ("broken_batch", "fp16_overflow --steps 34", "shrinking_scale --steps 24", "odd_sample --steps 36",
            "high_rate --steps 40", "evaluated_in_fp16 --steps 24", "token_ids --steps 24", "muon_on_the_head --steps 12")


@pytest.mark.parametrize("program,launcher", ways(CAUSES, [("broken_batch --mistake", "torchrun")]))
def test_the_cause_is_told(tmp_path, program, launcher):
    with Job(LAUNCHERS[launcher](*program.split()), tmp_path) as job:
        job.end()
        report = job.wait_for("finding", 5 + SLACK, lambda: job.report() and job.report()["findings"] and job.report())
        first, *others = [finding for finding in report["findings"] if finding["resolved"] is None]
        CAUSES[program](first, job)
        serious = [other for other in others if other["severity"] != "info"]     # a loaded machine has stragglers
        assert all(other["consequence_of"] is not None for other in serious), serious


def falls(job):
    """The mean loss of all ranks in the last steps is below that in the first."""
    by_step = {}
    for (_, what), number in losses(job).items():
        if "evaluation" not in what:
            by_step.setdefault(int(what.split()[1]), []).append(float(number))
    means = [sum(numbers) / len(numbers) for _, numbers in sorted(by_step.items()) if len(numbers) == RANKS]
    return len(means) >= 8 and sum(means[-3:]) < sum(means[:3])


@pytest.mark.parametrize("program,launcher", ways(REPAIRED, [("broken_batch", "torchrun")]))
def test_the_repaired_program_is_silent(tmp_path, program, launcher):
    with Job(LAUNCHERS[launcher](*program.split()), tmp_path) as job:
        assert job.end() == 0, job.log()[-3000:]
        report = job.wait_for("report", 10, lambda: job.report() and job.report()["verdict"] == "healthy" and job.report())
        assert report["findings"] == [] and falls(job), (report["findings"], losses(job))


def test_another_loss_is_no_trouble(tmp_path):
    with Job(LAUNCHERS["torchrun"]("another_loss", "--steps", "40"), tmp_path) as job:
        assert job.end() == 0, job.log()[-3000:]
        report = job.wait_for("report", 10, lambda: job.report() and job.report()["verdict"] == "healthy" and job.report())
        finding, = [finding for finding in report["findings"] if finding["class"] == "grad-norm-spike"]
        assert kind(finding) == ("grad-norm-spike", "info", "judged") and finding["step"] == 24, finding
        assert "WARNING" not in job.log(), job.log()[-3000:]
        says(finding, "the loss by the same factor: it seems to be another loss")
