"""Losses, norms, loss scales, batches and modules: what of them is noted, on the CPU, where values are there at once."""
import math
import types
import weakref

import pytest

torch = pytest.importorskip("torch")


@pytest.fixture
def numbers(probe):
    probe.torch = torch
    return probe.numbers


def noted(native):
    return {what[1]: what[2] for what in native.of("note")}


def words(text):
    return dict(word.split("=", 1) for word in text.split(" "))


def train(probe, losses, norms=(), first=0, **more):
    for step, loss in enumerate(losses, first):
        probe.steps._begin(step)
        probe.numbers.loss(torch.tensor(loss))
        if norms:
            probe.numbers.norm(norms[step - first], **more)


def test_finite_numbers_say_nothing(probe, native, numbers):
    train(probe, [1.0 / (step + 1) for step in range(100)], [2.0 + step % 3 for step in range(100)])
    assert noted(native) == {"seed.torch": str(torch.initial_seed())} and not native.skipped()


def test_the_first_loss_that_is_not_finite_is_told_with_what_was_before(probe, native, numbers):
    model = torch.nn.Linear(2, 2).half()
    numbers.forward_begins(model)
    train(probe, [3.0, 2.0, math.inf, math.nan, 2.5, 2.4])
    said = noted(native)
    first = words(said["nan.loss"])
    assert (first["step"], first["value"], first["good"], first["last"], first["model"]) == ("2", "inf", "2", "2", "float16")
    assert said["nan.losses"] == "bad=2 finite_again=4"


def test_an_infinite_loss_of_a_gradient_scaler_is_its_own_business(probe, native, numbers):
    numbers.scaled = True
    train(probe, [3.0, math.inf])
    assert "nan.loss" not in noted(native)
    train(probe, [math.nan], first=2)
    assert words(noted(native)["nan.loss"])["step"] == "2"


def test_a_norm_that_jumps_is_told_with_its_loss_and_what_came_after(probe, native, numbers):
    train(probe, [1.0] * 20 + [50.0] + [1.0] * 10, [2.0, 3.0] * 10 + [400.0] + [2.0] * 10, clip=1.0)
    jump, after = words(noted(native)["jump.1"]), words(noted(native)["jump.1.after"])
    told = [jump[word] for word in ("step", "norm", "usual", "largest", "of", "loss", "usual_loss", "clip")]
    assert told == ["20", "400", "2.5", "3", "20", "50", "1", "1"]
    assert (after["steps"], after["high"]) == ("8", "0") and "jump.2" not in noted(native)


def test_norms_that_rise_slowly_or_early_do_not_jump(probe, native, numbers):
    train(probe, [1.0] * 10, [1.0] * 5 + [500.0] * 5)
    train(probe, [1.0] * 80, [10 * 1.2 ** step for step in range(80)], first=10)
    assert not [key for key in noted(native) if key.startswith("jump")]


def test_norms_behind_a_jump_that_stay_high_are_counted(probe, native, numbers):
    train(probe, [1.0] * 30, [2.0] * 20 + [400.0] + [300.0, math.inf, 200.0] * 3)
    assert words(noted(native)["jump.1.after"])["high"] == "8"
    assert words(noted(native)["nan.norm"])["value"] == "inf"


def test_norms_that_were_high_and_are_as_before_are_over(probe, native, numbers):
    train(probe, [1.0] * 47, [2.0] * 20 + [400.0] + [300.0] * 10 + [2.0] * 7 + [300.0] + [2.0] * 8)
    after, over = words(noted(native)["jump.1.after"]), words(noted(native)["jump.1.over"])
    assert (after["high"], after["norm"]) == ("8", "300") and (over["step"], over["norm"]) == ("46", "2")


def scales(probe, values, first=0):
    for step, (scale, skipped) in enumerate(values, first):
        probe.steps._begin(step)
        probe.numbers.scale_is(scale, skipped, 1)


def test_falls_of_the_scale_count_from_the_first_step_that_was_made(probe, native, numbers):
    scales(probe, [(32768, True), (16384, True), (16384, False), (16384, False), (8192, True)])
    said = words(noted(native)["scale"])
    assert (said["falls"], said["first_made"], said["skipped"], said["of"], said["now"]) == ("1", "2", "3", "5", "8192")
    scales(probe, [(16384, False), (8192, True), (4096, True)], first=5)
    said = words(noted(native)["scale"])
    assert (said["falls"], said["changes"].split(",")[-1]) == ("2", "7:4096")


def test_the_scale_may_lie_in_a_tensor(probe, native, numbers):
    numbers.scale_begins(torch.tensor(8.0))
    scales(probe, [(torch.tensor(4.0), False), (torch.tensor(2.0), False), (torch.tensor(2.0), False)])
    said = words(noted(native)["scale"])                  # a scale falls only when a step was skipped
    assert (said["skipped"], said["start"], said["falls"]) == ("2", "8", "0")


def test_notes_are_few_however_long_it_goes_on(probe, native, numbers):
    train(probe, [math.nan, 1.0] * 2000)
    scales(probe, [(float(2 ** (step % 20)), False) for step in range(2000)], first=5000)
    assert len(native.of("note")) < 100                    # others need room among the facts, too


def test_an_evaluation_that_is_not_finite(probe, native, numbers):
    model = torch.nn.Linear(2, 2)
    numbers.forward_begins(model)
    train(probe, [1.0])
    numbers.evaluated(model, {"loss": torch.tensor(1.0), "logits": torch.tensor([math.nan])})
    numbers.evaluated(model, torch.ones(2, 2, dtype=torch.int64))
    numbers.evaluated(model, None)
    assert "nan.evaluation" not in noted(native)
    numbers.evaluated(model.half(), (torch.tensor([[1.0, math.nan]], dtype=torch.float16), "more"))
    said = words(noted(native)["nan.evaluation"])
    assert (said["model"], said["output"], said["trained_model"], said["good"]) == ("float16", "float16", "float32", "1")


class Logarithm(torch.nn.Linear):
    def forward(self, x):
        return (super().forward(x) * 0).log() * 0


def test_the_innermost_module_that_was_not_finite_is_named(probe, native, numbers):
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Sequential(torch.nn.Linear(3, 3), Logarithm(3, 3)),
                                torch.nn.Linear(3, 3))
    probe.names.add_model(model)
    before = torch.random.get_rng_state()
    probe.steps._begin(0)
    numbers.forward_begins(model)
    loss = model(torch.ones(2, 3)).sum()
    numbers.loss(loss)
    loss.backward()
    said = words(noted(native)["nan.module"])
    assert (said["module"], said["input"], said["step"], said["after_bad"]) == ("1.1", "finite", "0", "0")
    assert torch.equal(before, torch.random.get_rng_state())
    torch.optim.SGD(model.parameters(), lr=1.0).step()
    probe.steps._begin(1)
    numbers.forward_begins(model)                          # after a bad loss, parameters are looked at, too
    bad = words(noted(native)["nan.parameters"])
    assert 0 < int(bad["bad"]) <= int(bad["of"]) == 8
    numbers.loss(model(torch.ones(2, 3)).sum())
    probe.watch.stop()


def test_modules_are_looked_at_in_few_forwards_only(probe, native, numbers):
    model = torch.nn.Linear(3, 3)
    probe.names.add_model(model)
    hooks = torch.nn.modules.module._global_forward_hooks
    watched = []
    for step in range(20):
        probe.steps._begin(step)
        numbers.forward_begins(model)
        watched.append(bool(hooks))
        numbers.loss(model(torch.ones(1, 3)).sum() * (math.nan if 5 <= step < 12 else 1))
        assert not hooks
    assert watched[0] and watched[6] and sum(watched) == 3 and not native.skipped()


def test_nothing_is_looked_at_when_it_is_switched_off(probe, native, numbers):
    probe.numerics = False
    model = torch.nn.Linear(3, 3)
    numbers.forward_begins(model)
    numbers.loss(torch.tensor(math.nan))
    numbers.norm(math.inf)
    numbers.scale_is(1, True, 1)
    numbers.evaluated(model, torch.tensor(math.nan))
    probe.inputs.batch({"x": torch.tensor([math.nan])}, 0, True)
    assert not native.said


def test_a_field_that_is_not_finite_is_told_with_its_samples(probe, native, numbers):
    batch = {"input": {"x": torch.ones(4, 3), "y": torch.ones(4, 3, dtype=torch.float16)}, "name": "a text"}
    probe.inputs.batch(batch, 0, True)
    batch["input"]["y"][1:3, 2] = math.inf
    probe.inputs.batch(batch, 1, True)
    said = words(noted(native)["nan.batch"])
    told = [said[word] for word in ("batch", "field", "kind", "bad", "of", "samples")]
    assert told == ["1", "input.y", "float16[4,3]", "2", "12", "1,2"]
    probe.inputs.batch((torch.tensor([math.nan]),), 0, False)
    assert words(noted(native)["nan.other_batch"])["field"] == "0"


def test_large_numbers_are_finite(probe, native, numbers):
    probe.inputs.batch([torch.full((8,), 3e38), torch.full((100,), 65504.0, dtype=torch.float16)], 0, True)
    probe.inputs.batch([torch.zeros(300, 300).t()], 1, True)
    assert not native.said


def test_a_mask_in_a_healthy_module_is_not_taken_for_the_first_nan(probe, native, numbers):
    class Masking(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x).masked_fill(torch.eye(3, dtype=torch.bool), -math.inf).softmax(-1).log()

    torch.manual_seed(0)
    model = torch.nn.Sequential(Masking(3, 3), torch.nn.Linear(3, 3))
    probe.names.add_model(model)
    numbers.forward_begins(model)
    numbers.loss(model(torch.ones(3, 3)).sum())
    said = words(noted(native)["nan.module"])              # what follows the mask is nan
    assert (said["module"], said["input"]) == ("1", "not")


def test_ids_are_told_once_the_model_is_known(probe, native, numbers):
    batch = {"input_ids": torch.tensor([[1, 2], [3, 10]]), "labels": torch.tensor([[-100, 99]]), "length": torch.tensor([99])}
    probe.inputs.batch(batch, 0, True)
    assert not native.said
    probe.names.add_model(torch.nn.Sequential(torch.nn.Embedding(4, 2), torch.nn.Embedding(10, 2)))
    probe.inputs.model_is_known()
    said = words(noted(native)["ids.range"])
    told = [said[word] for word in ("field", "largest", "rows", "samples", "batch")]
    assert told == ["input_ids", "10", "10", "1", "0"]


def test_later_batches_are_looked_at_within_a_share_of_the_time(probe, native, numbers, monkeypatch):
    from dshang_probe import inputs
    clock = [0.0]
    monkeypatch.setattr(inputs.time, "perf_counter", lambda: clock[0])
    looked = []

    def look(name, tensor, number, training):
        looked.append(number)
        clock[0] += 0.01                                   # each look takes 10 ms, each step 100 ms
    monkeypatch.setattr(probe.inputs, "_look", look)
    for number in range(500):
        clock[0] += 0.1
        probe.inputs.batch([torch.ones(1)], number, True)
    assert looked[:8] == list(range(8)) and 0.01 * len(looked) <= 0.004 * clock[0] + 0.01


class Engine:
    """DeepSpeed's, as far as its numbers go."""

    def __init__(self, half):
        self.half, self.global_steps, self._global_grad_norm = half, 0, math.inf
        self.optimizer = types.SimpleNamespace(overflow=True, cur_scale=512.0, param_groups=[{"lr": 0.25}],
                                               loss_scaler=types.SimpleNamespace(min_scale=2))

    def fp16_enabled(self):
        return self.half

    def dynamic_loss_scale(self):
        return True

    def gradient_clipping(self):
        return 1.0


@pytest.mark.parametrize("half", [True, False])
def test_each_step_of_an_engine_is_looked_at_once(probe, native, numbers, half):
    engine = Engine(half)
    probe.steps.engine = weakref.ref(engine)
    for step, scale in enumerate((512.0, 256.0)):
        probe.steps._begin(step)
        engine.optimizer.cur_scale = scale
        engine.global_steps += 1
        probe.engine._look_at_step(engine)
        probe.engine._look_at_step(engine)                 # a micro-step without a step
    said = noted(native)
    assert ("nan.norm" in said) != half                    # an overflow is the business of a scale that adapts
    if half:
        scale = words(said["scale"])
        assert [scale[word] for word in ("now", "floor", "skipped", "of", "first_made", "lr")] == [
            "256", "2", "2", "2", "None", "0.25"]
    else:
        assert words(said["nan.norm"])["skipped"] == "1" and numbers.scale is None
    other = Engine(half)
    other.global_steps = 5
    probe.engine._look_at_step(other)                      # of a second model: it has its own history
    assert numbers.steps_made == (2 if half else 0)
