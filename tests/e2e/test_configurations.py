"""Configurations given to the real DeepSpeed: those that cannot work are told by the doctor's rule.  In the long part alone."""
import glob
import json
import os

import pytest
from jobs import LONG, RANKS, Job, deepspeed

FITTING = {"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": True}, "zero_optimization": {"stage": 1},
           "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}}}
LONG_TEXT = {"_notes": ["of the run, number %d" % number for number in range(400)]}      # more than a record holds

# rule: what is given
REFUSED = {
    "12.3-1": dict(FITTING, train_batch_size=3, gradient_accumulation_steps=1),
    "12.3-1, in pieces": dict(FITTING, train_batch_size=3, gradient_accumulation_steps=1, **LONG_TEXT),
    "12.3-2": dict(FITTING, fp16={"enabled": True}),
    "X-22": dict(FITTING, zero_optimization={"stage": 1, "overlap_com": True}),
    "X-34": dict(FITTING, scheduler={"type": "Cosine", "params": {}}),
    "X-05": dict(FITTING, gradient_clipping="auto"),
    "X-05, in pieces": dict(FITTING, gradient_clipping="auto", **LONG_TEXT),
}
WORKING = {"plain": FITTING, "a key of its own": dict(FITTING, my_own="x"), "sizes": dict(FITTING, train_batch_size=2 * RANKS),
           "in pieces": dict(FITTING, **LONG_TEXT)}


def rules_of(report):
    return [finding["evidence"][0].split()[1] for finding in report["findings"] if finding["class"] == "known-error"]


def ended(tmp_path, config):
    """Exit status, last report and log of a job that was given this."""
    with Job(deepspeed("given_config", json.dumps(config)), tmp_path) as job:
        status = job.end()
        spool = os.path.join(job.directory, "flight", "spool.*")
        job.wait_for("last report", 20, lambda: job.report() and not glob.glob(spool))
        return status, job.report(), job.log()


if LONG:
    @pytest.mark.parametrize("rule", REFUSED)
    def test_a_configuration_that_cannot_work_is_told_by_its_rule(tmp_path, rule):
        status, report, log = ended(tmp_path, REFUSED[rule])
        assert status != 0 and rules_of(report) == [rule.split(",")[0]], (report["findings"], log[-2000:])
        finding = next(one for one in report["findings"] if one["class"] == "known-error")
        assert (finding["severity"], finding["certainty"]) == ("error", "proven") and finding["fix"]
        assert all(one["consequence_of"] is not None for one in report["findings"] if one["class"] == "rank-dead")

    @pytest.mark.parametrize("name", WORKING)
    def test_a_configuration_that_works_is_not(tmp_path, name):
        status, report, log = ended(tmp_path, WORKING[name])
        assert status == 0 and report["findings"] == [], (report["findings"], log[-2000:])
