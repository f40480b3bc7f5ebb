"""Jobs that do what real ones do and that could be mistaken for a fault: dshang says nothing, or tells it as information."""
import time

import pytest
from jobs import LAUNCHERS, RANKS, Job, losses, ways

STEPS = 6
SILENT = ("adapters", "ddp_join", "dummy_branch", "early_stopping", "expert_parallel", "gathered_export", "offload",
          "offload_parameters", "pipeline", "rollouts", "save_and_load", "two_engines", "uneven_evaluation")
WITHOUT_A_BATCH = {"ddp_join": 2}                                     # steps that the last rank does not make
BUSY = {"prepared_on_rank_0": 0, "slow_first_step": 1}                # which rank the others wait for


def ended_well(tmp_path, name, launcher, **settings):
    """The findings of a job that ran to its end and was called healthy."""
    with Job(LAUNCHERS[launcher](name, "--steps", str(STEPS)), tmp_path, **settings) as job:
        assert job.end() == 0, job.log()[-3000:]
        time.sleep(2.5)                                               # the monitor finishes its files within 2 s
        report = job.report()
        assert (report["verdict"], report["job"]["world_size"]) == ("healthy", RANKS), report["findings"]
        made = [what for _, what in losses(job) if what.endswith("loss")]
        assert len(made) == STEPS * RANKS - WITHOUT_A_BATCH.get(name, 0), job.log()[-3000:]
        return report["findings"]


@pytest.mark.parametrize("name,launcher", ways(SILENT, [("pipeline", "torchrun"), ("two_engines", "deepspeed")]))
def test_nothing_is_said(tmp_path, name, launcher):
    assert ended_well(tmp_path, name, launcher) == []


@pytest.mark.parametrize("name,launcher", ways(BUSY, [("slow_first_step", "torchrun")]))
def test_a_rank_that_works_alone_is_told_as_information(tmp_path, name, launcher):
    findings = ended_well(tmp_path, name, launcher, DSHANG_STALL_AFTER="3")    # so short that a slow import may count, too
    assert {(f["class"], f["severity"], f["resolved"] is None) for f in findings} == {("host-stall", "info", False)}, findings
    assert [f for f in findings if f["suspects"] == [BUSY[name]] and name + ".py:" in f["summary"]], findings
