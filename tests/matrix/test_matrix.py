"""The matrix's own logic: reading records, judging them, the table.  The rows themselves are run by scripts/matrix."""
import os
import types

import matrix_check
import matrix_facts
import matrix_issue
import matrix_packages
import matrix_rows
import matrix_table
import pytest

DUMP = """\
rank {rank} start 1 pid 100 world 2
comm world
fact version.torch 2.14.1
fact version.nccl 2.30.7
fact deepspeed.direct_backward supported
fact loader.length 8
fact batch.0 "ab12 float32[4,32]"
fact batch.1 unread
visit step 0
visit phase_push forward
visit trace_mode RECORD
visit module_enter Model training=yes
visit gather "ids 0-1 (embed.weight ... embed.bias)"
visit module_enter blocks.0 training=yes
visit phase_pop
visit phase_push backward
visit module_enter blocks.0 training=yes thread=3
visit module_enter blocks.0 phase=recompute training=yes thread=3
visit phase_pop
visit micro_step 1
visit trace_mode "INVALID got=a expected=b"
visit phase_push optimizer
visit phase_pop
memory step=0 at=1 device=1 reserved_peak=5 allocated_peak=4
memory step=- at=1 device=1
"""


def dump(*ranks):
    return "".join(DUMP.format(rank=rank) for rank in ranks)


def test_facts_are_read_from_the_records():
    _, known = matrix_facts.judged(matrix_facts.read(dump(1, 0)), ())
    wanted = {"forward visits": "2", "backward visits": "1", "recompute visits": "1", "steps": "1", "micro-steps": "1",
              "phases": "backward forward optimizer", "gathers": "1, 1 named", "trace mode": "RECORD INVALID", "loader": "8",
              "batches": "1", "allocator": "1", "config": "", "data-parallel ranks": "", "versions": "2.14.1",
              "backward": "supported", "structure": ""}
    assert known == wanted


def test_a_fact_that_one_rank_lacks_is_missing():
    text = dump(0) + dump(1).replace("visit trace_mode RECORD\n", "").replace('visit trace_mode "INVALID got=a expected=b"\n', "")
    missing, _ = matrix_facts.judged(matrix_facts.read(text), ("steps", "trace mode"))
    assert missing == ["trace mode"]


def test_what_the_probe_skipped_is_missing_too():
    text = dump(0, 1) + 'fact "probe.skipped.module visits" "KeyError: 3"\n'
    missing, _ = matrix_facts.judged(matrix_facts.read(text), ("steps",))
    assert missing == ["module visits (KeyError: 3)"]


def test_nothing_recorded_is_all_missing():
    assert matrix_facts.judged({}, ("steps", "loader")) == (["steps", "loader"], {})


def healthy(report, seen, wanted):
    result = matrix_check.Result("row")
    matrix_check.judge_healthy(result, report, matrix_check.findings_of(report), seen, wanted)
    return result


LOSSES = [("0", "step 0 loss", "0.5"), ("1", "step 0 loss", "0.6")]
INFO = {"verdict": "healthy", "findings": [{"severity": "info", "summary": "late"}]}


def test_a_healthy_row_is_silent_and_has_the_same_losses():
    assert healthy(INFO, LOSSES, LOSSES).good and "2 equal losses" in healthy(INFO, LOSSES, LOSSES).healthy


@pytest.mark.parametrize("report, seen, wanted, said", [
    (None, LOSSES, LOSSES, "no report"),
    ({"verdict": "warning", "findings": [{"severity": "warning", "summary": "regather"}]}, LOSSES, LOSSES, "regather"),
    (INFO, LOSSES[:1], LOSSES, "other losses"), (INFO, [], [], "no losses")])
def test_a_row_that_is_not_healthy_fails(report, seen, wanted, said):
    result = healthy(report, seen, wanted)
    assert not result.good and said in result.wrong[0] and "wrong" in matrix_table.outcome(result)


@pytest.fixture
def mistake(tmp_path):
    (tmp_path / "train.py").write_text("import torch\nx = block(x)\n")
    return matrix_rows.Mistake(["deepspeed", str(tmp_path / "train.py")], "module-skipped", 1, "train.py", "x = block(x)", "blocks.5")


def report(**changed):
    finding = {"class": "module-skipped", "severity": "hang", "suspects": [1], "summary": "rank 1 left out blocks.5",
               "evidence": ["at programs/train.py:2 forward"], "sides": [], "consequence_of": None}
    return {"findings": [dict(finding, **changed)]}


def test_an_explained_mistake_passes(mistake):
    result = matrix_check.Result("row")
    matrix_check.judge_mistake(result, report(), mistake)
    assert result.good and result.mistakes == ["module-skipped, rank 1, train.py:2"]


@pytest.mark.parametrize("changed, said", [
    ({"class": "unknown-hang"}, "class unknown-hang"), ({"suspects": [0]}, "suspects [0]"),
    ({"evidence": ["at transformers/trainer.py:2 forward"]}, "no train.py:2"),
    ({"evidence": ["at programs/train.py:21 forward"]}, "no train.py:2"),
    ({"summary": "rank 1 left out blocks.51"}, "no module blocks.5"),
    ({"sides": [{"user_site": "transformers/trainer.py:9 train"}]}, "taken for the user's: transformers/trainer.py:9 train")])
def test_a_mistake_that_is_explained_otherwise_fails(mistake, changed, said):
    result = matrix_check.Result("row")
    matrix_check.judge_mistake(result, report(**changed), mistake)
    assert not result.good and said in result.wrong[0]


def test_a_second_cause_fails(mistake):
    said = report()
    said["findings"].append(dict(said["findings"][0], **{"class": "host-stall"}))
    result = matrix_check.Result("row")
    matrix_check.judge_mistake(result, said, mistake)
    assert "also host-stall" in result.wrong[0]


BUG_REPORT = """\
## TrainingArguments

Those that differ from their defaults.

```json
{
  "learning_rate": 0.001,
  "max_steps": 6
}
```

## Environment
"""


@pytest.mark.parametrize("markdown, wanted, said", [
    (BUG_REPORT, {"max_steps": 6, "learning_rate": 1e-3}, []),
    (BUG_REPORT, {"max_steps": 7}, ["the bug report tells max_steps=6"]),
    (BUG_REPORT, {"bf16": True}, ["the bug report tells bf16=None"]),
    (BUG_REPORT + "hub_token=xyz\n", {}, ["the bug report tells a secret"]),
    ("## Environment\n", {}, ["the bug report has no TrainingArguments"])])
def test_a_bug_report_must_tell_the_arguments_and_no_secret(markdown, wanted, said):
    assert matrix_issue.complaints(markdown, wanted, "xyz") == said


def backward(direct, summary=None, evidence=""):
    result = matrix_check.Result("row", direct=direct)
    matrix_check.judge_direct(result, [{"summary": summary, "evidence": [evidence]}] if summary else [])
    return result


REFUSED = "RuntimeError: Direct calls to tensor.backward() are not supported"
SAME = "as engine.backward"


@pytest.mark.parametrize("direct, summary, evidence, good", [
    ({"3 bf16": SAME}, None, "", True),
    ({"3 bf16": SAME}, "rank 0 called loss.backward()", "", False),
    ({"3 bf16": SAME, "0 bf16": REFUSED}, "which DeepSpeed refuses here", "ZeRO stage 0", True),
    ({"3 bf16": SAME, "0 bf16": REFUSED}, "which DeepSpeed refuses here", "ZeRO stage 3", False),
    ({"3 bf16": SAME, "0 bf16": REFUSED}, None, "", False),
    ({"3 bf16": "KeyError: 0"}, "of which this DeepSpeed knows nothing", "ZeRO stage 3", True),
    ({"3 bf16": "KeyError: 0"}, "which DeepSpeed refuses here", "ZeRO stage 3", False)])
def test_what_is_said_of_torchs_backward_must_be_what_happened(direct, summary, evidence, good):
    assert backward(direct, summary, evidence).good == good


def test_the_reason_of_a_failure_is_its_last_exception():
    log = "\n".join(["Traceback (most recent call last):", "[rank1]: AttributeError: module 'torch' has no attribute 'x'",
                     "subprocess.CalledProcessError: Command died", "[INFO] killing"])
    assert matrix_check.reason(log) == "AttributeError: module 'torch' has no attribute 'x'"
    assert matrix_check.reason("\none\n\n") == "one" and matrix_check.reason("") == "no output"


def test_the_page_holds_the_results_between_its_marks(tmp_path):
    good = matrix_check.Result("DeepSpeed 1", {"deepspeed": "1"}, healthy="silent", mistakes=["module-skipped"],
                               date="2026-01-02", facts={"steps": "4", "config": "ab12", "loader": ""}, direct={"3 bf16": SAME})
    blocked = matrix_check.Result("DeepSpeed 0", {"deepspeed": "0"}, blocked="ImportError: a | b\nc", date="2026-01-01")
    for result in (good, blocked):
        matrix_table.store(str(tmp_path / "results"), result)
    assert matrix_table.stored(str(tmp_path / "results"), "DeepSpeed 2") is None
    made = matrix_table.page([matrix_table.stored(str(tmp_path / "results"), name) for name in ("DeepSpeed 1", "DeepSpeed 0")])
    assert made == matrix_table.page([good, blocked])
    assert "2026-01-01 to 2026-01-02" in made and "| DeepSpeed 1 | deepspeed 1 | runs | silent | module-skipped |" in made
    assert "| DeepSpeed 0 | deepspeed 0 | does not run: ImportError: a \\| b c | - | - |" in made
    assert "| what | steps | config |\n|---|---|---|\n| DeepSpeed 1 | 4 | yes |" in made
    assert "| DeepSpeed 1 | as engine.backward |" in made
    page = "before\n" + matrix_table.BEGIN + "old\n" + matrix_table.END + "after\n"
    assert matrix_table.put(page, made) == "before\n" + matrix_table.BEGIN + made + matrix_table.END + "after\n"
    with pytest.raises(ValueError):
        matrix_table.put("nothing", made)


def test_every_row_can_be_started_and_names_one_line_of_the_user():
    rows = matrix_rows.rows()
    assert len({row.name for row in rows}) == len(rows) >= 11
    for row in rows:
        assert set(row.facts) <= set(matrix_facts.present(matrix_facts.Recorded()))
        for mistake in row.mistakes:
            assert os.path.exists(next(word for word in row.healthy if word.endswith(".py")))
            assert matrix_check.line_number(mistake) > 0


def distribution(folder, name, version, *requires):
    info = folder / ("%s-%s.dist-info" % (name, version))
    info.mkdir(parents=True)
    info.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: %s\nVersion: %s\n%s" % (
        name, version, "".join("Requires-Dist: %s\n" % text for text in requires)))


def test_what_a_package_needs_and_the_environment_lacks_is_installed_too(tmp_path, monkeypatch):
    asked = []

    def run(command, **_):
        asked.append(command[command.index("--target") + 2:])
        for wanted in asked[-1]:
            name = wanted.split("=")[0].split(">")[0]
            distribution(tmp_path / "made", name, "2.0", *{"frame": ("small_one>=2", "pytest", "other; extra == 'x'"),
                                                           "small_one": ("smaller",)}.get(name, ()))
        return types.SimpleNamespace(returncode=0, stdout="")
    monkeypatch.setattr(matrix_packages.subprocess, "run", run)
    folder = str(tmp_path / "made")
    assert matrix_packages.installed(folder, ["frame==2.0"]) == folder
    assert asked == [["frame==2.0"], ["small_one>=2"], ["smaller"]]
    matrix_packages.installed(folder, ["frame==2.0"])
    assert len(asked) == 3                                    # it is there
    assert matrix_packages.versions(folder, ["frame", "pytest", "absent"]) == {"frame": "2.0", "pytest": pytest.__version__}
