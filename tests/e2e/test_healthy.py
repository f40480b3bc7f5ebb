"""Healthy programs, and the repaired ones: dshang says nothing, and changes nothing."""
import pytest
from jobs import RANKS, Job, deepspeed, losses, torchrun

PROGRAMS = {
    "skipped_block": (deepspeed, 6), "zero1": (deepspeed, 6), "zero3_checkpointed": (deepspeed, 4),
    "train_and_evaluate": (deepspeed, 4), "ddp_no_sync": (torchrun, 6), "fsdp2": (torchrun, 6),
}
REPAIRED = {"early_return": (torchrun, 6), "leaves_loop": (torchrun, 6), "two_models": (torchrun, 6)}


def run(folder, name, launch, steps, with_dshang=True):
    """The losses of a program that must end well; with dshang it must be called healthy."""
    folder.mkdir()
    with Job(launch(name, "--steps", str(steps)), folder, with_dshang) as job:
        assert job.end() == 0, job.log()[-3000:]
        seen = losses(job)
        if with_dshang:
            report = job.wait_for("report of the whole job", 10, lambda: healthy(job))
            assert report["job"]["world_size"] == RANKS
            assert [f for f in report["findings"] if f["severity"] != "info"] == [], report["findings"]
            assert "HANG" not in job.log()
    assert len([1 for _, what in seen if "loss" in what]) == steps * RANKS
    return seen


def healthy(job):
    report = job.report()
    return report if report and report["verdict"] == "healthy" else None


@pytest.mark.parametrize("name", PROGRAMS)
def test_is_silent_and_changes_no_loss(tmp_path, name):
    launch, steps = PROGRAMS[name]
    assert run(tmp_path / "with", name, launch, steps) == run(tmp_path / "without", name, launch, steps, with_dshang=False)


@pytest.mark.parametrize("name", REPAIRED)
def test_the_repaired_program_is_silent(tmp_path, name):
    run(tmp_path / "with", name, *REPAIRED[name])
