"""Values that go wrong: each is told by its cause, and the repaired program is silent (test_quiet_mistakes.py)."""
import pytest
from jobs import LAUNCHERS, RANKS, SLACK, Job, ways


def weights_on_rank_0(finding):
    assert (finding["class"], finding["severity"], finding["certainty"]) == ("parameters-differ", "error", "proven")
    assert finding["suspects"] == [0]
    assert "different weights: head.weight, head.bias;" in finding["summary"]
    assert any("2 of 52 replicated parameters" in line for line in finding["evidence"])
    assert "before DistributedDataParallel" in finding["fix"][0]


CAUSES = {"weights_on_rank_0 --mistake": weights_on_rank_0}
FEW = ()


@pytest.mark.parametrize("program,launcher", ways(CAUSES, FEW))
def test_the_cause_is_told(tmp_path, program, launcher):
    with Job(LAUNCHERS[launcher](*program.split()), tmp_path) as job:
        job.end()
        report = job.wait_for("finding", 5 + SLACK, lambda: job.report() and job.report()["findings"] and job.report())
        first, *others = report["findings"]
        assert all(other["consequence_of"] == 0 for other in others), others
        CAUSES[program](first)
