"""What must agree across the ranks of a real job, and what may differ."""
import os
import re
import time

from jobs import HERE, RANKS, Job

PROGRAM = os.path.join(HERE, "programs", "facts.py")


def ended(tmp_path, how):
    command = ["deepspeed", "--master_port", "27%03d" % (os.getpid() % 1000), "--num_gpus", str(RANKS), PROGRAM, how]
    with Job(command, tmp_path) as job:
        assert job.end() == 0, job.log()[-3000:]
        time.sleep(2.5)                                                # the monitor finishes its files within 2 s
        return job.report()


def test_seeds_paths_and_interfaces_differ_by_design(tmp_path):
    report = ended(tmp_path, "by_design")
    assert report["verdict"] == "healthy" and report["findings"] == [], report["findings"]


def test_the_key_that_differs_in_ds_config_is_named(tmp_path):
    report = ended(tmp_path, "config")
    assert [f["class"] for f in report["findings"]] == ["facts-differ"], report["findings"]
    [finding] = report["findings"]
    assert (finding["severity"], finding["certainty"]) == ("warning", "proven")
    assert re.search(r"zero_optimization\.reduce_bucket_size is \d00000000 on rank", finding["summary"]), finding
    assert "tensorboard" not in str(finding) and "ds_config" in finding["fix"][0], finding
