"""Values that are looked at later: of parameters, on the CPU and on a device that stands still."""
import types

import pytest

torch = pytest.importorskip("torch")


def noted(native):
    return {what[1]: what[2] for what in native.of("note")}


def model(*shapes):
    torch.manual_seed(0)
    made = torch.nn.Module()
    for number, shape in enumerate(shapes):
        made.register_parameter("p%d" % number, torch.nn.Parameter(torch.randn(*shape)))
    return made


@pytest.fixture
def values(probe):
    probe.torch = torch
    return probe.values


def hashes(native, key):
    return noted(native)[key + ".0"].split()


def test_equal_weights_have_equal_hashes_and_a_change_shows_where_it_is(values, native):
    first, second = model((40, 3), (5,)), model((40, 3), (5,))
    values.taken_over(first, "parameters.1")
    with torch.no_grad():
        second.p1[4] += 1
    values.taken_over(second, "parameters.2")
    mine, other = hashes(native, "values.parameters.1.made"), hashes(native, "values.parameters.2.made")
    assert mine[0] == other[0] and mine[1] != other[1] and len(mine) == 2
    assert noted(native)["values.parameters.1.made"].startswith("2 ")


def test_models_of_other_groups_are_not_compared(values, native):
    values.taken_over(model((8,)), "wrapped.1", "0 1")
    values.taken_over(model((8,)), "wrapped.2", "2 3")
    (_, mine, same), (_, other, as_well) = (noted(native)["values.wrapped.%d.made" % n].split() for n in (1, 2))
    assert mine != other and same == as_well


def test_only_what_changed_since_the_model_was_taken_over_is_told_again(values, native):
    one, other = model((40, 3)), model((8,))
    values.taken_over(one, "wrapped.1")
    values.taken_over(other, "wrapped.2")
    with torch.no_grad():
        other.p0.mul_(2)
    values.step_begins(0)
    said = noted(native)
    assert said["values.wrapped.1.begun"] == said["values.wrapped.1.made"] and "values.wrapped.1.begun.0" not in said
    assert said["values.wrapped.2.begun"] != said["values.wrapped.2.made"] and "values.wrapped.2.begun.0" in said
    native.said.clear()
    values.step_begins(1)
    assert not noted(native)                              # looked at when training begins, and not again


def test_shards_experts_and_ignored_parameters_are_left_out(values, native):
    made = model((8,), (8,), (8,), (4, 4))
    made.p0.ds_id = 7
    made.p1.allreduce = False
    made._ddp_params_and_buffers_to_ignore = ["p2"]
    made.p3.data = made.p3.data.t()
    values.taken_over(made, "parameters.1")
    assert noted(native)["values.parameters.1.made"].startswith("1 ")
    assert hashes(native, "values.parameters.1.made")[0] == "-"          # the shard keeps its place
    native.said.clear()
    for parameter in made.parameters():
        parameter.ds_id = 8
    values.taken_over(made, "parameters.1")
    assert not noted(native) and not native.skipped()


def test_nothing_is_looked_at_when_it_is_switched_off(values, native, probe):
    probe.numerics = False
    values.taken_over(model((8,)), "parameters.1")
    values.step_begins(0)
    assert not native.said


class Event:
    made = []

    def __init__(self):
        self.done, self.asked = False, 0
        self.made.append(self)

    def record(self, stream):
        self.done = False

    def query(self):
        self.asked += 1
        if self.done is None:
            raise RuntimeError("device-side assert")
        return self.done


@pytest.fixture
def later(probe):
    Event.made.clear()
    cuda = types.SimpleNamespace(Event=Event, is_initialized=lambda: True, current_stream=lambda device: device,
                                 is_current_stream_capturing=lambda: cuda.capturing, capturing=False)
    probe.torch = types.SimpleNamespace(cuda=cuda)
    return probe.later


def test_values_are_read_in_order_once_they_have_come(later):
    seen = []
    for number in range(3):
        later.when_copied("cuda:0", lambda number=number: seen.append(number))
    Event.made[1].done = True
    later.poll()
    assert seen == [] and Event.made[2].asked == 0        # one question a look while nothing has come
    Event.made[0].done = True
    later.poll()
    assert seen == [0, 1]
    later.when_copied("cuda:0", lambda: None)
    assert len(Event.made) == 3                           # an event that has served is used again


def test_nothing_is_asked_or_copied_during_a_capture(later, probe):
    later.when_copied("cuda:0", lambda: None)
    graph = type("CUDAGraph", (), {"capture_begin": lambda self: None, "capture_end": lambda self: None})
    later.watch_graphs(types.SimpleNamespace(CUDAGraph=graph))
    assert later.possible()
    graph().capture_begin()                               # of another thread
    later.poll()
    assert not later.possible() and Event.made[0].asked == 0
    graph().capture_end()
    later.poll()
    assert later.possible() and Event.made[0].asked == 1
    probe.torch.cuda.capturing = True
    later.poll()
    assert not later.possible() and Event.made[0].asked == 1


def test_a_device_that_failed_is_not_asked_again(later, native):
    later.when_copied("cuda:0", lambda: None)
    later.when_copied("cuda:0", lambda: None)
    Event.made[0].done = None
    later.poll()
    later.poll()
    assert Event.made[0].asked == 1 and not later.possible() and not native.skipped()


def test_copies_under_way_are_bounded(later):
    while later.possible():
        later.when_copied("cuda:0", lambda: None)
    assert len(later.open) == 256
