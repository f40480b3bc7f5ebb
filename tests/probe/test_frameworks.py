"""The probe inside real torch and real DeepSpeed, on the CPU."""
import json
import os
import socket
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))


def run(program, tmp_path, **settings):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    env = dict(os.environ, PROBE=os.path.join(HERE, "..", "..", "probe"), PORT=port, SAVE=str(tmp_path), **settings)
    done = subprocess.run([sys.executable, os.path.join(HERE, "programs", program)], env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, timeout=300)
    lines = [line for line in done.stdout.splitlines() if line.startswith("SAID ")]
    assert len(lines) == 1, done.stderr[-3000:]
    said = json.loads(lines[0][5:])
    said["at_end"] = [json.loads(line[4:]) for line in done.stdout.splitlines() if line.startswith("END ")]
    said["said"], said["stderr"], said["status"] = [tuple(what) for what in said["said"]], done.stderr, done.returncode
    return said


def notes(said):
    return {what[1]: what[2] for what in said if what[0] == "note"}


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return run("plain_torch.py", tmp_path_factory.mktemp("plain"), ARM="1")


@pytest.fixture(scope="module")
def unobserved(tmp_path_factory):
    return run("plain_torch.py", tmp_path_factory.mktemp("unobserved"), ARM="0")


def test_plain_torch_steps_and_visits(plain):
    said = [what for what in plain["said"][:plain["marks"]["plain"]] if what[0] not in ("note", "memory", "batch")]
    assert [what for what in plain["said"][:plain["marks"]["plain"]] if what[0] == "batch"] == 2 * [("batch", 2, 4)]
    step = [("push", "forward"), ("visit", "Model", "forward", 1), ("visit", "first", "forward", 1),
            ("visit", "second", "forward", 1), ("pop",), ("exit_module",), ("push", "backward"), ("pop",),
            ("push", "optimizer"), ("pop",)]
    evaluation = [("push", "forward")] + [("visit", name, "forward", 0) for name in ("Model", "first", "second")] + [
        ("pop",), ("exit_module",)]
    assert [what for what in said if what[0] != "step"] == step + step + [("loop_end", "2")] + evaluation
    assert [what for what in said if what[0] == "step"] == [("step", 0), ("step", 1)]
    assert said[0] == ("step", 0)


def test_plain_torch_facts(plain):
    facts = notes(plain["said"])
    assert float(facts["pg.timeout_seconds"]) >= 300
    assert facts["loader.length"] == "2" and facts["dataset.length"] == "4" and facts["version.torch"]
    assert facts["loader.sampler"] == "SequentialSampler" and facts["loader.batch_size"] == "2" and facts["seed.torch"] == "0"
    count, trained, size = (int(number) for number in facts["model.size"].split())
    assert count == trained > 0 and size == 4 * count
    batches = [facts["batch.%d" % number].split() for number in range(2)]
    assert batches[0][0] != batches[1][0] and {batch[1] for batch in batches} == {"float32[2,4]"}
    assert not [key for key in facts if key.startswith("probe.skipped")], facts


def test_fsdp2_backward_visits(plain):
    said = plain["said"][plain["marks"]["plain"]:plain["marks"]["fsdp"]]
    visits = [what[1:3] for what in said if what[0] == "visit"]
    names = [("FSDPModel", "forward"), ("FSDPModel.first", "forward"), ("FSDPModel.second", "forward")]
    assert visits[:3] == names, visits
    assert ("FSDPModel.second", "backward") in visits and ("FSDPModel.first", "backward") in visits
    assert ("teardown", 0) in said


def test_a_compiled_model_has_the_same_graphs(plain, unobserved):
    assert plain["results"] == unobserved["results"]
    assert len(plain["results"]["graphs"]) == 1 and plain["results"]["breaks"] == 0
    assert notes(plain["said"])["probe.visits"].startswith("off")


def test_an_uncaught_exception_prints_as_before(plain, unobserved):
    assert plain["status"] == unobserved["status"] == 1
    last = [[line for line in one["stderr"].splitlines() if "the end" in line] for one in (plain, unobserved)]
    assert last[0] == last[1] and len(last[0]) == 2
    assert "<dshang>" not in plain["stderr"] and "dshang_probe" not in plain["stderr"]


def test_an_uncaught_exception_is_recorded(plain, unobserved):
    [exception] = [what for what in plain["at_end"][0] if what[0] == "exception"]
    assert exception[1:3] == ["RuntimeError", "the end"] and exception[3].endswith("plain_torch.py")
    assert plain["at_end"][0][-1] == ["teardown", 1] and unobserved["at_end"] == [[]]


@pytest.fixture(scope="module")
def zero3(tmp_path_factory):
    return run("zero3_cpu.py", tmp_path_factory.mktemp("zero3"), ARM="early")


def test_deepspeed_steps(zero3):
    said = zero3["said"]
    assert [what for what in said if what[0] in ("step", "micro_step")] == [
        ("step", 0), ("micro_step", 1), ("step", 1), ("micro_step", 1), ("step", 2), ("micro_step", 1)]
    assert [what[1] for what in said if what[0] == "trace_mode"] == ["RECORD", "COMPLETE"]
    init = ["init"] * 3                                       # the process group, zero.Init, the engine
    assert [what[1] for what in said if what[0] == "push"] == init + 6 * ["forward", "backward", "optimizer"] + [
        "forward", "save", "gather", "gather"]
    assert len([what for what in said if what[0] == "pop"]) == len([what for what in said if what[0] == "push"])


def test_deepspeed_visits(zero3):
    said = zero3["said"]
    begin, end = said.index(("step", 1)), said.index(("step", 2))
    visits = [what[1:] for what in said[begin:end] if what[0] == "visit"]
    forward = ["Model", "blocks.0", "blocks.0.inner", "blocks.1", "blocks.1.inner", "blocks.2", "blocks.2.inner", "head"]
    backward = ["Model", "head", "blocks.2", "blocks.2.inner", "blocks.1"]
    micro_step = ([(name, "forward", 1) for name in forward] + [(name, "backward", 1) for name in backward] +
                  [(name, "recompute", 1) for name in ("blocks.1", "blocks.1.inner")] +
                  [(name, "backward", 1) for name in ("blocks.1.inner", "blocks.0", "blocks.0.inner")])
    assert visits == micro_step + micro_step
    evaluation = [what[1:] for what in said if what[0] == "visit"][-len(forward):]
    assert evaluation == [(name, "forward", 0) for name in forward]


def test_deepspeed_gathers(zero3):
    gathers = [what[1:] for what in zero3["said"] if what[0] == "gather"]
    assert gathers[0][1] == "ids 0-1 (blocks.0.inner.weight ... blocks.0.inner.bias)"
    complete = [gather for gather in gathers if gather[1] == "ids 0-7 (blocks.0.inner.weight ... head.bias)"]
    assert len(complete) == 6 and len({gather[0] for gather in complete}) == 1


def test_deepspeed_facts(zero3):
    facts = notes(zero3["said"])
    assert facts["deepspeed.stage"] == "3" and facts["version.deepspeed"].startswith("0.")
    assert json.loads(facts["deepspeed.config"])["bf16"] == {"enabled": True} and len(facts["deepspeed.config.hash"]) == 16
    assert facts["data_parallel.ranks"] == "0" and facts["parameters.1"].split()[0] == "8"
    assert facts["parameters.1.0"].split()[1] == "blocks.0.inner.weight[16,16]:bfloat16"
    assert "backward.plain" not in facts and "backward.torch" not in facts
    # zero.Init tells what it knows, the engine the rest
    first, second = (what[2] for what in zero3["said"] if tuple(what[:2]) == ("note", "deepspeed.memory"))
    assert first == "stage=3 dtype=bf16 checkpointing_block=False" and "micro_batch=2" in second, (first, second)
    assert not [key for key in facts if key.startswith("probe.skipped")], facts


def test_waits_while_a_model_is_built_and_changes_no_result(zero3, tmp_path):
    inside = run("zero3_cpu.py", tmp_path, ARM="inside")
    assert inside["losses"] == zero3["losses"]
    visits = [[what for what in said["said"] if what[0] == "visit"] for said in (inside, zero3)]
    assert visits[0] == visits[1]


def test_losses_are_those_without_the_probe(zero3, tmp_path):
    never = run("zero3_cpu.py", tmp_path, ARM="never")
    assert never["said"] == [] and never["losses"] == zero3["losses"]
