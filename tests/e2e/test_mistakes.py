"""Each example with its mistake: the live report, while the job hangs, says who, where and why."""
import time

import pytest
from jobs import RANKS, SLACK, Job, deepspeed, line_of

WITHIN = 10.0     # seconds from the last step that all ranks finished to the report; most of it is the ranks' own way there


def last_good_step(job):
    return len(job.lines(r"^\[rank \d+\] step 3 loss")) == RANKS


def hang(job):
    report = job.report()
    return report if report and report["verdict"] == "hang" else None


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Runs an example with its mistake until dshang reports; keeps (report, text, log, seconds)."""
    known = {}

    def get(name):
        if name not in known:
            with Job(deepspeed(name, "--mistake"), tmp_path_factory.mktemp(name), DSHANG_STALL_AFTER="10") as job:
                job.wait_for("the first four steps", 200, lambda: last_good_step(job) or hang(job))
                begin = time.monotonic()
                report = job.wait_for("report of a hang", 60, lambda: hang(job))
                seconds = time.monotonic() - begin
                time.sleep(1.5)                                       # the report may still grow, and must stay right
                assert job.living(), "the job ended by itself:\n" + job.log()[-2000:]
                known[name] = job.report() or report, job.text(), job.log(), seconds
        return known[name]
    return get


CASES = {
    "skipped_block": dict(kind="module-skipped", module="blocks.5", line="y = block(x)", function="forward"),
    "early_return": dict(kind="early-return", module=None, line=None, function=None),
    "leaves_loop": dict(kind="early-return", module=None, line=None, function=None),
}


@pytest.mark.parametrize("name", CASES)
def test_the_cause_comes_first(reports, name):
    report, _, log, _ = reports(name)
    first = report["findings"][0]
    assert (first["class"], first["severity"], first["suspects"]) == (CASES[name]["kind"], "hang", [1]), first
    assert first["waiting"] == [rank for rank in range(RANKS) if rank != 1], first
    assert first["step"] == 4, first
    others = [f["class"] for f in report["findings"][1:] if f["severity"] in ("hang", "error") and f["consequence_of"] is None]
    assert others == [], others


@pytest.mark.parametrize("name", CASES)
def test_the_report_is_live_and_in_time(reports, name):
    _, text, log, seconds = reports(name)
    assert seconds < WITHIN + SLACK
    assert "rank 1" in text and "rank 1" in "\n".join(line for line in log.splitlines() if "[rank" not in line)


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name]["module"]])
def test_the_module_and_its_line_are_named(reports, name):
    report, text, _, _ = reports(name)
    wanted, first = CASES[name], reports(name)[0]["findings"][0]
    assert wanted["module"] in text
    place = f"{name}.py:{line_of(name, wanted['line'])} "
    everything = text + str(report["findings"][0]["evidence"]) + str(first["sides"])
    assert place in everything, (place, everything)


def test_the_proof_needs_no_threshold(reports):
    assert reports("skipped_block")[0]["findings"][0]["certainty"] == "proven"
    assert reports("skipped_block")[0]["findings"][0]["class_certainty"] == "proven"
