"""Healthy programs, and the repaired ones: dshang says nothing, and changes nothing."""
import pytest
from jobs import RANKS, Job, deepspeed, losses, torchrun

PROGRAMS = {
    "skipped_block": (deepspeed, 6), "early_return": (deepspeed, 6), "leaves_loop": (deepspeed, 6),
    "zero1": (deepspeed, 6), "zero3_checkpointed": (deepspeed, 4), "train_and_evaluate": (deepspeed, 4),
    "ddp_no_sync": (torchrun, 6), "fsdp2": (torchrun, 6),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_is_silent_and_changes_no_loss(tmp_path, name):
    launch, steps = PROGRAMS[name]
    seen = {}
    for with_dshang in (True, False):
        folder = tmp_path / ("with" if with_dshang else "without")
        folder.mkdir()
        with Job(launch(name, "--steps", str(steps)), folder, with_dshang) as job:
            assert job.end() == 0, job.log()[-3000:]
            seen[with_dshang] = losses(job)
            if with_dshang:
                report = job.wait_for("report", 10, job.report)
                assert (report["verdict"], report["job"]["world_size"]) == ("healthy", RANKS), report
                assert [f for f in report["findings"] if f["severity"] != "info"] == [], report["findings"]
    assert len([1 for _, what in seen[True] if "loss" in what]) == steps * RANKS
    assert seen[True] == seen[False]
