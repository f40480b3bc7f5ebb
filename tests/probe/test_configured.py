"""Configurations as DeepSpeed gets them, and how a program was started: with stand-ins for DeepSpeed and the Trainer."""
import dataclasses
import json
import os
import subprocess
import sys
import types

import pytest

from dshang_probe import program
from fake_native import FakeNative

FITTING = {"train_micro_batch_size_per_gpu": 2}


class Refusing:
    def __init__(self, config, mpu=None, mesh_device=None):
        assert "train_batch_size" not in config, "Check batch related\nparameters"


def initialize(*args, **kwargs):
    return Refusing(*args, **kwargs)


@pytest.fixture
def notes(probe, native):
    class Config(Refusing):
        pass
    globals()["Refusing"], kept = Config, Refusing
    probe.configured.watch(types.SimpleNamespace(DeepSpeedConfig=Config))
    yield lambda: {key: value for _, key, value in native.of("note")}
    globals()["Refusing"] = kept


def test_what_initialize_gets_is_noted(notes):
    initialize(dict(FITTING, steps_per_print=float("inf"), optimizer=Refusing))
    assert json.loads(notes()["deepspeed.given"]) == dict(FITTING, steps_per_print=1e300, optimizer="type")
    assert set(notes()) == {"deepspeed.given"}


def test_a_file_is_noted_as_it_is_written(notes, tmp_path):
    (tmp_path / "ds_config.json").write_text('{"a": 1, # a remark\n}')
    initialize(str(tmp_path / "ds_config.json"))
    assert notes()["deepspeed.given"] == '{"a": 1, # a remark\n}'


def test_a_pipe_is_left_to_the_program(notes):
    reading, writing = os.pipe()
    os.write(writing, b'{"zero_optimization": {}}')
    os.close(writing)
    initialize(f"/dev/fd/{reading}")
    assert "deepspeed.given" not in notes()
    assert os.read(reading, 100) == b'{"zero_optimization": {}}'
    os.close(reading)


def test_an_error_without_a_text_stays_the_programs_error(notes, probe):
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    probe.configured.refused(Mute())
    assert "deepspeed.refused" not in notes()


def test_what_is_no_file_is_not_noted(notes):
    initialize("eyJhIjogMX0=")
    assert notes() == {}


def test_a_long_one_is_noted_in_pieces(notes):
    config = {"ä%d" % n: "x" * 90 for n in range(200)}
    initialize(config)
    found = notes()
    count = int(found["deepspeed.given"].split("pieces ")[1])
    pieces = [found["deepspeed.given/%d" % n] for n in range(1, count + 1)]
    assert count > 4 and all(len(piece.encode()) <= 3500 for piece in pieces) and json.loads("".join(pieces)) == config


def test_no_letter_is_divided(notes, tmp_path):
    (tmp_path / "ds_config.json").write_text("{_a: " + "ä€" * 3000 + "\n}", encoding="utf-8")
    initialize(str(tmp_path / "ds_config.json"))
    found = notes()
    pieces = [found["deepspeed.given/%d" % n] for n in range(1, len(found))]
    assert "".join(pieces) == "{_a: " + "ä€" * 3000 + "\n}"


def test_pieces_are_not_read_while_they_are_written(notes, native):
    """A second long configuration under the same key: the head says so before its pieces come, and after them."""
    for size in (9000, 5000):
        initialize({"a" * size: 1})
    heads = [value[:8] for _, key, value in native.of("note") if key == "deepspeed.given"]
    assert heads == ['cut {"aa', "pieces 3", 'cut {"aa', "pieces 2"]


def test_one_that_is_too_long_for_pieces_says_that_it_is_cut(notes):
    initialize({"a" * 50000: 1})
    assert notes()["deepspeed.given"].startswith('cut {"aaa') and len(notes()["deepspeed.given"]) == 3500
    assert set(notes()) == {"deepspeed.given"}


def test_a_refusal_is_noted_and_goes_on_to_the_program(notes):
    with pytest.raises(AssertionError, match="Check batch") as raised:
        initialize(dict(FITTING, train_batch_size=3))
    assert notes()["deepspeed.refused"].startswith("AssertionError: Check batch related parameters")
    if sys.version_info >= (3, 11):
        assert not [frame for frame in raised.traceback if "dshang_probe" in str(frame.path)]


def test_what_the_engine_had_read_is_noted_where_the_probe_came_later(notes, probe):
    probe.configured.refused(AssertionError("no LR scheduler"), FITTING)
    assert json.loads(notes()["deepspeed.given"]) == FITTING and "no LR scheduler" in notes()["deepspeed.refused"]


def test_what_initialize_got_stands_before_what_the_engine_had_read(notes, probe):
    initialize(FITTING)
    probe.configured.refused(AssertionError("no LR scheduler"), {"a": 1})
    assert json.loads(notes()["deepspeed.given"]) == FITTING


def test_a_division_of_the_job_is_noted(notes):
    initialize(FITTING, object())
    assert notes()["deepspeed.divided"] == "mpu"
    initialize(FITTING, mesh_device=object())
    assert notes()["deepspeed.divided"] == "mesh_device"


def test_what_zero_init_reads_is_not_noted(notes):
    Refusing({"train_micro_batch_size_per_gpu": "auto"})
    with pytest.raises(AssertionError):
        Refusing({"train_batch_size": "auto"})
    assert notes() == {}


@pytest.mark.parametrize("words, text", [
    (["python", "train.py", "--name", "a b"], "python train.py --name 'a b'"),
    (["train.py", "--hub_token", "hf_x", "--lr", "1"], "train.py --hub_token ... --lr 1"),
    (["train.py", "--password=x"], "train.py --password=..."),
    (["train.py", "--max_new_tokens", "5", "--tokenizer", "gpt2"], "train.py --max_new_tokens 5 --tokenizer gpt2"),
    (["train.py", "--use_token", "--lr", "1"], "train.py --use_token --lr 1"),
])
def test_a_command_is_told_without_secrets(words, text):
    assert program._text_of(words) == text


def test_the_outermost_launcher_is_told(tmp_path):
    """A launcher that starts a launcher that starts the program."""
    (tmp_path / "torchrun").write_text("import subprocess, sys\nsubprocess.run([sys.executable] + sys.argv[1:])\n")
    code = "from dshang_probe import program; import sys; print(program._text_of(program._launcher()))"
    told = subprocess.run([sys.executable, tmp_path / "torchrun", "-c", code], capture_output=True, text=True, timeout=60,
                          env={"PYTHONPATH": ":".join(sys.path)})
    assert f"{tmp_path}/torchrun -c " in told.stdout, told.stderr


def test_arguments_of_the_trainer_are_told_where_they_are_no_defaults(probe, native):
    @dataclasses.dataclass
    class Arguments:
        output_dir: str = "out"
        learning_rate: float = 5e-5
        betas: list = dataclasses.field(default_factory=list)
        hub_token: str = None
        max_tokens: int = 0

    class Trainer:
        def __init__(self, args=None):
            self.args = args
    probe.arguments.watch(types.SimpleNamespace(Trainer=Trainer))
    Trainer(args=Arguments(learning_rate=1e-3, hub_token="hf_x", max_tokens=7))
    Trainer(args=Arguments(learning_rate=2e-3))
    texts = [value for _, key, value in native.of("note") if key == "hf.arguments"]
    assert [json.loads(text) for text in texts] == [{"learning_rate": 1e-3, "max_tokens": 7}]


def test_the_command_is_noted_once(monkeypatch):
    monkeypatch.setattr(program.sys, "orig_argv", ["python", "-u", "train.py", "--lr", "1e-4"])
    native = FakeNative()
    program.note_command(native)
    assert native.of("note")[0] == ("note", "program.command", "python -u train.py --lr 1e-4")
