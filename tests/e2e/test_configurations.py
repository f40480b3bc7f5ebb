"""Configurations given to the real DeepSpeed: those that cannot work are told by the doctor's rule.  In the long part alone."""
import json

import pytest
from jobs import LONG, RANKS, Job, deepspeed

FITTING = {"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": True}, "zero_optimization": {"stage": 1},
           "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}}}
PATIENCE = 240

REFUSED = {
    "12.3-1": dict(FITTING, train_batch_size=3, gradient_accumulation_steps=1),
    "12.3-2": dict(FITTING, fp16={"enabled": True}),
    "X-22": dict(FITTING, zero_optimization={"stage": 1, "overlap_com": True}),
    "X-34": dict(FITTING, scheduler={"type": "Cosine", "params": {}}),
    "X-05": dict(FITTING, gradient_clipping="auto"),
}
WORKING = {"plain": FITTING, "a key of its own": dict(FITTING, my_own="x"), "sizes": dict(FITTING, train_batch_size=2 * RANKS)}


def rules_of(report):
    return [finding["evidence"][0].split()[1] for finding in report["findings"] if finding["class"] == "known-error"]


if LONG:
    @pytest.mark.parametrize("rule", REFUSED)
    def test_a_configuration_that_cannot_work_is_told_by_its_rule(tmp_path, rule):
        with Job(deepspeed("given_config", json.dumps(REFUSED[rule])), tmp_path) as job:
            job.process.wait(PATIENCE)
            report = job.report()
        assert report and rules_of(report) == [rule], report
        finding = next(one for one in report["findings"] if one["class"] == "known-error")
        assert (finding["severity"], finding["certainty"]) == ("error", "proven") and finding["fix"]
        assert all(one["consequence_of"] is not None for one in report["findings"] if one["class"] == "rank-dead")

    @pytest.mark.parametrize("name", WORKING)
    def test_a_configuration_that_works_is_not(tmp_path, name):
        with Job(deepspeed("given_config", json.dumps(WORKING[name])), tmp_path) as job:
            assert job.process.wait(PATIENCE) == 0, job.log()[-2000:]
            assert not job.report() or job.report()["findings"] == []
