"""Each example with its mistake: the live report, while the job hangs, says who, where and why."""
import re
import time

import pytest
from jobs import LAUNCHERS, RANKS, SLACK, Job, line_of, ways

WITHIN = 10.0     # seconds from the last step that all ranks finished to the report; most of it is the ranks' own way there
STALL = 10.0      # DSHANG_STALL_AFTER of these jobs
ODD = [rank for rank in range(RANKS) if rank % 2]

# Each example, with more arguments behind a blank.  Of the first finding: `suspects`, `waiting` where it is not everybody
# else, `step`; where it tells them, `module` and `line` (with the function in which the line stands); `says`: patterns that it
# holds.  `after`: seconds of a threshold that it rests on.
CASES = {
    "skipped_block": dict(kind="module-skipped", module="blocks.5", line=("y = block(x)", "SkippingModel.forward")),
    "early_return": dict(kind="early-return"),
    "leaves_loop": dict(kind="early-return"),
    "idle_expert": dict(kind="module-skipped", module="mixture.experts.2", says=["leaf_module"],
                        line=("result[mine] = expert(x[mine])", "Mixture.forward")),
    "tiled_head": dict(kind="repeat-count-differs", module="head", line=("(self.head(y) - target)", "TiledModel.tile"),
                       says=[r"2 times on rank 1, 1 time on ranks? 0", "MAX"]),
    "borrowed_weight": dict(kind="rank-conditional-call", line=("self.embed.weight)", "BorrowingModel.forward"),
                            says=["register_external_parameter", "belongs to another module"]),
    "watched_on_rank_0": dict(kind="module-skipped", suspects=[0], module="embed",
                              line=("self.seen = (self.embed(x)", "WatchedModel.watch")),
    "metric_on_rank_0": dict(kind="rank-conditional-call", suspects=[0], step=5, says=["rank == 0"],
                             line=("dist.all_reduce(value", "log_mean")),
    "saved_on_rank_0": dict(kind="rank-conditional-call", suspects=[0], says=["'save'", "rank == 0"],
                            line=("engine.save_checkpoint(", "save")),
    "two_models": dict(kind="rank-conditional-call", line=("fake = generator(noise)", "update_discriminator"),
                       says=["left out", "update_generator"]),
    "unequal_generation": dict(kind="repeat-count-differs", says=["3 times on rank 1", "synced_gpus"]),
    "group_on_some_ranks": dict(kind="comm-init-stall", suspects=ODD, step=3, after=STALL, says=["call `new_group`"],
                                line=("dist.all_reduce(value, group=group)", "log")),
    "group_on_some_ranks --bound": dict(kind="comm-init-stall", suspects=ODD, step=3, after=STALL, says=["`new_group`"],
                                        line=("return some, dist.new_group()", "groups")),
}
FEW = [("skipped_block", "deepspeed"), ("early_return", "deepspeed"), ("leaves_loop", "deepspeed"),
       ("saved_on_rank_0", "torchrun"), ("two_models", "torchrun")]
WAYS = ways(CASES, FEW)


def last_good_step(job):
    return len(job.lines(r"^\[rank \d+\] step 3 loss")) == RANKS


def hang(job):
    report = job.report()
    return report if report and report["verdict"] == "hang" else None


def waiting(case):
    return case.get("waiting", [rank for rank in range(RANKS) if rank not in case.get("suspects", [1])])


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Runs an example with its mistake until dshang reports; keeps (report, text, log, seconds)."""
    known = {}

    def get(name, launcher):
        if (name, launcher) not in known:
            command = LAUNCHERS[launcher](*name.split(), "--mistake")
            with Job(command, tmp_path_factory.mktemp(name.split()[0]), DSHANG_STALL_AFTER="%g" % STALL) as job:
                job.wait_for("the first four steps", 200 + SLACK, lambda: last_good_step(job) or hang(job))
                begin = time.monotonic()
                report = job.wait_for("report of a hang", 60 + SLACK, lambda: hang(job))
                seconds = time.monotonic() - begin
                # A rank that is late comes into the same report, which must stay right.
                job.wait_for("all that wait", 10 + SLACK, lambda: (hang(job) or report)["findings"][0]["waiting"] == waiting(CASES[name]))
                time.sleep(1.5)
                assert job.living(), "the job ended by itself:\n" + job.log()[-2000:]
                known[name, launcher] = job.report() or report, job.text(), job.log(), seconds
        return known[name, launcher]
    return get


@pytest.mark.parametrize("name,launcher", WAYS)
def test_the_cause_comes_first(reports, name, launcher):
    report, case = reports(name, launcher)[0], CASES[name]
    first, suspects = report["findings"][0], case.get("suspects", [1])
    assert (first["class"], first["severity"], first["suspects"]) == (case["kind"], "hang", suspects), first
    assert first["waiting"] == waiting(case), first
    assert first["step"] == case.get("step", 4), first
    others = [f["class"] for f in report["findings"][1:] if f["severity"] in ("hang", "error") and f["consequence_of"] is None]
    assert others == [], others
    everything = "\n".join([first["summary"], *first["evidence"], *first["fix"]])
    for pattern in case.get("says", []):
        assert re.search(pattern, everything), (pattern, everything)


@pytest.mark.parametrize("name,launcher", WAYS)
def test_the_report_is_live_and_in_time(reports, name, launcher):
    _, text, log, seconds = reports(name, launcher)
    assert seconds < WITHIN + SLACK + CASES[name].get("after", 0)
    suspect = "rank %d" % CASES[name].get("suspects", [1])[0]
    assert suspect in text and suspect in "\n".join(line for line in log.splitlines() if "[rank" not in line)


@pytest.mark.parametrize("name,launcher", [way for way in WAYS if "line" in CASES[way[0]]])
def test_the_module_and_its_line_are_named(reports, name, launcher):
    first, (line, function) = reports(name, launcher)[0]["findings"][0], CASES[name]["line"]
    told = "\n".join([first["summary"], *first["evidence"], str(first["sides"])])
    program = name.split()[0]
    assert f"{program}.py:{line_of(program, line)} {function}" in told, told
    if "module" in CASES[name]:
        assert re.search(r"\b%s\b" % re.escape(CASES[name]["module"]), first["summary"]), first["summary"]


def test_the_proof_needs_no_threshold(reports):
    first = reports("skipped_block", "deepspeed")[0]["findings"][0]
    assert (first["certainty"], first["class_certainty"]) == ("proven", "proven")
