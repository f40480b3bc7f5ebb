"""What the probe notes so that ranks can be compared: batches, loaders, models, configurations, backward, traces."""
import ctypes
import gc
import json
import math
import os
import sys
import types
from collections import UserDict

import pytest
from dshang_probe import facts
from dshang_probe.batches import fingerprint, largest
from dshang_probe.structure import note_parameters


class Tensor:
    """A tensor, as far as fingerprints go; its memory is a ctypes buffer."""

    def __init__(self, data, shape=None, device="cpu", stride=None):
        self.buffer = ctypes.create_string_buffer(bytes(data), len(data))
        self.shape, self.dtype, self.layout = shape or (len(data),), "torch.uint8", "torch.strided"
        self.device, self.strides = types.SimpleNamespace(type=device), stride

    def stride(self):
        if self.strides:
            return self.strides
        return tuple(math.prod(self.shape[dimension + 1:]) for dimension in range(len(self.shape)))

    def numel(self):
        return len(self.buffer)

    def element_size(self):
        return 1

    def data_ptr(self):
        assert self.device.type == "cpu", "memory of the device was asked for"
        return ctypes.addressof(self.buffer)


def hash_of(batch):
    found = fingerprint(batch, (Tensor,))
    return found and found[0]


def test_equal_contents_have_equal_hashes():
    one, same = {"x": Tensor(b"abc"), "y": [Tensor(b"d"), 1]}, {"x": Tensor(b"abc"), "y": [Tensor(b"d"), 1]}
    assert hash_of(one) == hash_of(same) != hash_of({"x": Tensor(b"abd"), "y": [Tensor(b"d"), 1]})
    assert hash_of((Tensor(b"abcd", (2, 2)),)) != hash_of((Tensor(b"abcd", (4, 1)),))
    assert fingerprint([Tensor(b"abcd", (2, 2))], (Tensor,))[1] == "uint8[2,2]"


def test_the_largest_tensor_of_a_batch_is_found_without_reading_it():
    small, large = Tensor(b"", (2, 3), device="cuda"), Tensor(b"", (4, 2048), device="cuda")
    assert largest({"ids": large, "more": [small, None, 7]}, (Tensor,)) == (4, 2048)
    assert largest(((small,), {"x": large}), (Tensor,)) == (4, 2048)
    assert largest(Tensor(b"", (1, 2, 3, 4, 5)), (Tensor,)) == (1, 2, 3, 4)
    assert largest({"x": 1, "y": "text"}, (Tensor,)) == () == largest(None, (Tensor,))


def test_settings_that_decide_over_memory(tmp_path):
    config = {"bf16": {"enabled": True}, "activation_checkpointing": {}, "zero_optimization": {
        "stage": 3, "stage3_gather_16bit_weights_on_model_save": True, "offload_optimizer": {"device": "cpu"},
        "offload_param": {"device": "nvme", "nvme_path": str(tmp_path / "not" / "there"), "max_in_cpu": 1000}}}
    engine = types.SimpleNamespace(_config=types.SimpleNamespace(_param_dict=config), zero_optimization_stage=lambda: 3,
                                   train_micro_batch_size_per_gpu=lambda: 4)
    noted = {}
    facts.note_memory_settings(types.SimpleNamespace(note=noted.__setitem__), engine, 1)
    told = dict(part.split("=") for part in noted["deepspeed.memory"].split())
    assert told.pop("offload_param.disk")
    assert told == {"stage": "3", "micro_batch": "4", "dtype": "bf16", "offload_optimizer": "cpu", "offload_param": "nvme",
                    "offload_param.max_in_cpu": "1000", "gather_16bit": "True", "checkpointing_block": "True"}


def test_settings_are_known_before_there_is_an_engine():
    config = types.SimpleNamespace(zero_optimization_stage=3, _param_dict={"zero_optimization": {
        "stage": 3, "offload_param": {"device": "nvme", "nvme_path": "/dev/shm/not/there"}}})
    noted = {}
    facts.note_memory_before_engine(types.SimpleNamespace(note=noted.__setitem__), config)
    assert noted == {"deepspeed.memory": "stage=3 offload_param=nvme offload_param.disk=no_disk_of_this_machine "
                                         "checkpointing_block=False"}, noted
    facts.note_memory_before_engine(types.SimpleNamespace(note=noted.__setitem__), types.SimpleNamespace())
    assert len(noted) == 1


def test_a_path_in_memory_is_on_no_disk(tmp_path):
    assert facts.disk_of("/dev/shm/not/there") == "no_disk_of_this_machine"
    disk = facts.disk_of(tmp_path).split(",")[0]
    assert disk == "no_disk_of_this_machine" or os.path.exists("/sys/block/" + disk), disk


def test_a_long_tensor_is_read_in_pieces_from_its_first_to_its_last_byte(monkeypatch):
    read = []
    original = ctypes.string_at
    monkeypatch.setattr(ctypes, "string_at", lambda *place: read.append(place) or original(*place))
    tensor = Tensor(bytes(1 << 20))
    assert hash_of(tensor)
    begin = tensor.data_ptr()
    assert sum(size for _, size in read) <= 4096
    assert read[0][0] == begin and read[-1][0] + read[-1][1] == begin + (1 << 20)
    assert all(begin <= address and address + size <= begin + (1 << 20) for address, size in read)


def test_nothing_is_read_of_the_device_or_of_unknown_objects():
    assert hash_of(Tensor(b"abc", device="cuda")) is None
    assert hash_of(Tensor(b"abcdef", shape=(3,), stride=(2,))) is None
    assert hash_of(["a label", Tensor(b"abcdef", shape=(3,), stride=(2,))]) is None
    assert hash_of([object(), None, 3, 2.5]) is None
    nested = []
    nested.append(nested)
    assert hash_of(nested) is None
    assert hash_of([Tensor(b"abc", device="cuda"), "a text"]) is None


def test_dense_tensors_are_read_in_any_order_of_their_dimensions():
    images = [Tensor(bytes(range(first, first + 24)), shape=(1, 3, 2, 4), stride=(24, 1, 12, 3)) for first in (0, 1)]
    assert hash_of(["a label", images[0]]) != hash_of(["a label", images[1]]) is not None


class Data(list):
    pass


class DataLoader:
    """torch's, as far as the probe looks at it."""
    __module__ = "torch.utils.data.dataloader"

    def __init__(self, *batches, sampler=None, batch_sampler=None, kind=0):
        self.dataset, self.batches = Data(range(2 * len(batches))), list(batches)
        self.sampler, self.batch_sampler, self.batch_size, self._dataset_kind = sampler, batch_sampler, 2, kind

    def __len__(self):
        return len(self.batches)


class Iterator:
    """_BaseDataLoaderIter."""

    def __init__(self, loader):
        self.left, self._num_yielded = list(loader.batches), 0

    def __next__(self):
        if not self.left:
            raise StopIteration
        self._num_yielded += 1
        return self.left.pop(0)


@pytest.fixture
def iterate(probe):
    iterator = type("Iterator", (Iterator,), dict(Iterator.__dict__))
    names = types.SimpleNamespace
    probe.numerics = False                               # there is no torch to look at values with
    probe.torch = names(Tensor=Tensor, nn=names(Parameter=Tensor), initial_seed=lambda: 7)
    probe.loader.watch(types.SimpleNamespace(_BaseDataLoaderIter=iterator))
    return iterator


def noted(native):
    return {what[1]: what[2] for what in native.of("note")}


def test_the_loader_that_feeds_the_first_step_is_the_training_loader(probe, native, iterate):
    look, train = DataLoader(Tensor(b"1")), DataLoader(*[Tensor(bytes([n])) for n in range(20)])
    next(iterate(look))                                  # rank 0 looks at the data first
    assert not noted(native)
    batches = iterate(train)
    for step in range(12):
        next(batches)
        probe.steps._begin(step)
    next(iterate(look))
    probe.steps._begin(12)
    said = noted(native)
    assert (said["loader.length"], said["dataset.length"], said["loader.first_step"]) == ("20", "40", "0")
    assert sorted(key for key in said if key.startswith("batch.")) == ["batch.%d" % n for n in range(8)]
    assert said["batch.3"].split() == [hash_of(Tensor(b"\3")), "uint8[1]"] and said["seed.torch"] == "7"
    assert not native.skipped()


def test_samplers_are_told_with_what_divides_the_data(probe, native, iterate):
    class DistributedSampler:
        def __init__(self):
            self.num_replicas, self.rank, self.drop_last = 4, 2, True

    next(iterate(DataLoader(Tensor(b"1"), sampler=DistributedSampler())))
    probe.steps._begin(5)
    assert noted(native)["loader.sampler"] == "DistributedSampler num_replicas=4 rank=2 drop_last=True"
    assert noted(native)["loader.first_step"] == "5"


def test_loaders_are_not_kept_alive(probe, native, iterate):
    loader = DataLoader(Tensor(b"1"))
    next(iterate(loader))
    del loader
    gc.collect()
    assert len(probe.loader.readings) == 0 and len(probe.loader.open) == 0


class Untouchable:
    """Of the program's own: whatever is asked of it, it does something."""

    def __len__(self):
        raise AssertionError("asked for its length")

    rank = property(__len__)
    __iter__ = __getitem__ = keys = values = __len__


class LikeSampler:
    """torch's RandomSampler."""
    __module__ = "torch.utils.data.sampler"

    def __init__(self, **parts):
        self.__dict__.update(parts)

    def __len__(self):
        return 3


@pytest.mark.parametrize("parts", [dict(sampler=Untouchable()), dict(batch_sampler=Untouchable()), dict(kind=1),
                                   dict(batch_sampler=LikeSampler(sampler=Untouchable())),
                                   dict(sampler=LikeSampler(batch_sampler=LikeSampler(sampler=Untouchable())))])
def test_samplers_and_streams_of_the_program_are_not_asked(probe, native, iterate, parts):
    loader = DataLoader(Tensor(b"1"), **parts)
    loader.dataset = Untouchable()
    next(iterate(loader))
    probe.steps._begin(0)
    assert noted(native)["loader.length"] == noted(native)["dataset.length"] == "unknown"
    assert noted(native)["batch.0"] and not native.skipped()


def test_lengths_are_asked_of_known_samplers(probe, native, iterate):
    batches = LikeSampler(sampler=LikeSampler(data_source=Untouchable()))
    next(iterate(DataLoader(Tensor(b"1"), batch_sampler=batches)))
    probe.steps._begin(0)
    assert noted(native)["loader.length"] == "1" and noted(native)["dataset.length"] == "2"


def test_the_end_of_a_loop_says_how_many_batches_there_were(native, iterate):
    batches = iterate(DataLoader(Tensor(b"1"), Tensor(b"2"), sampler=Untouchable()))
    assert [next(batches, None) for _ in range(3)][2] is None
    assert native.of("loop_end") == [("loop_end", "2")]


def test_containers_that_make_their_values_are_not_asked():
    class Lazy(dict):
        __getitem__ = Untouchable.__getitem__

    class Decoded(list):
        __getitem__ = __iter__ = Untouchable.__getitem__

    class Subclass(dict):
        values = items = keys = __iter__ = Untouchable.__getitem__

    text = {"x": "text"}
    assert hash_of(Lazy(text)) is None and hash_of(Decoded(["text"])) is None and hash_of(Untouchable()) is None
    assert hash_of(Subclass(text)) == hash_of(text) == hash_of(UserDict(text)) != hash_of({"x": "other"})


def parameter(*shape, frozen=False, **more):
    return types.SimpleNamespace(shape=shape, dtype="torch.bfloat16", requires_grad=not frozen, element_size=lambda: 2,
                                 numel=lambda: math.prod(shape), **more)


class Named:
    def __init__(self, **parameters):
        self.parameters = parameters

    def named_parameters(self):
        return [(name.replace("__", "."), value) for name, value in self.parameters.items()]


def test_the_structure_of_a_model(native):
    model = Named(a__weight=parameter(4, 2), shard=parameter(0, ds_shape=(9, 3)), norm=parameter(4, frozen=True),
                  expert=parameter(4, 4, allreduce=False))
    note_parameters(native, model, "parameters.1")
    said = noted(native)
    assert said["parameters.1"].split()[0] == "3"
    assert said["parameters.1.0"].split()[1:] == [
        "a.weight[4,2]:bfloat16", "shard[9,3]:bfloat16", "norm[4]:bfloat16:frozen"]


def test_a_large_model_takes_few_facts_and_one_change_shows_in_one_chunk(native):
    parameters = {"layers__%d__weight" % n: parameter(8, 8) for n in range(5000)}
    note_parameters(native, Named(**parameters), "parameters.1")
    before = noted(native)
    parameters["layers__3000__weight"] = parameter(8, 9)
    note_parameters(native, Named(**parameters), "parameters.1")
    after = noted(native)
    assert len(before) <= 65 and all(len(text) <= 1500 for text in before.values())
    changed = [key for key in before if before[key] != after[key]]
    assert len(changed) == 2 and "parameters.1" in changed
    note_parameters(native, Named(**parameters), "parameters.2")
    assert len([key for key in noted(native) if key.startswith("parameters.2")]) <= 9


def engine(config):
    return types.SimpleNamespace(zero_optimization_stage=lambda: 3, gradient_accumulation_steps=lambda: 4,
                                 _config=types.SimpleNamespace(_param_dict=config))


def test_configurations_are_compared_by_content_without_paths(native):
    def hashes(config, number=1):
        facts.note_engine(native, engine(config), number)
        return noted(native)["deepspeed.config.hash" + ("" if number == 1 else ".%d" % number)]
    one = hashes({"b": 1, "offload": {"nvme_path": "/local/1", "device": "nvme"}, "a": [1, 2], "odd": object()})
    assert hashes({"a": [1, 2], "b": 1, "offload": {"device": "nvme", "nvme_path": "/local/2"}, "odd": object()}) == one
    assert hashes({"a": [1, 3], "b": 1, "offload": {"device": "nvme"}, "odd": object()}) != one
    assert hashes({"a": 1}, 2) == hashes({"a": 1}) and noted(native)["deepspeed.accumulation.2"] == "4"


def test_a_long_configuration_of_a_later_engine_is_in_pieces_too(native):
    facts.note_engine(native, engine({"k%d" % n: "x" * 50 for n in range(200)}), 2)
    assert noted(native)["deepspeed.config.2"] == "pieces 4"
    assert json.loads("".join(noted(native)["deepspeed.config.2/%d" % n] for n in range(1, 5)))["k199"] == "x" * 50


class Engine:
    pass


def test_a_step_for_which_only_torchs_backward_ran_is_noted_once(probe, native):
    autograd = types.SimpleNamespace(backward=lambda *_: None, __name__="autograd")
    torch = types.SimpleNamespace(autograd=autograd, save=None, load=None, serialization=types.SimpleNamespace())
    actor, critic = Engine(), Engine()
    probe.training.watch_torch(torch)
    torch.autograd.backward()
    probe.training.engine_steps(actor, 1)
    assert not [key for key in noted(native) if key.startswith("backward")]   # there was no engine
    probe.engine.adopted = 1
    engines = probe.phases.around("backward", after=lambda *_: probe.training.engine_backward(actor))
    with_engine = engines(torch.autograd.backward)
    with_engine()
    probe.training.engine_steps(actor, 1)
    assert not [key for key in noted(native) if key.startswith("backward")]
    probe.in_backward = lambda: True                                          # a checkpoint, on a thread of autograd
    torch.autograd.backward()
    probe.in_backward = lambda: False
    probe.training.engine_steps(actor, 1)
    assert not [key for key in noted(native) if key.startswith("backward")]
    torch.autograd.backward()
    with_engine()
    probe.training.engine_steps(actor, 1)                                     # another model's, and the engine's
    assert "backward.plain" not in noted(native) and "test_comparisons.py" in noted(native)["backward.torch"]
    for _ in range(2):
        torch.autograd.backward()
        probe.training.engine_steps(actor, 1)
    assert len([what for what in native.of("note") if what[1] == "backward.plain"]) == 1
    assert noted(native)["backward.plain"].startswith("step None probe/test_comparisons.py:")
    with_engine()
    torch.autograd.backward()
    probe.training.engine_steps(critic, 2)                                    # the actor's own backward is not the critic's
    assert noted(native)["backward.plain.2"].startswith("step None probe/test_comparisons.py:")


def test_a_model_that_was_wrapped_before_is_known_from_its_first_forward_on(probe, native, monkeypatch):
    class Wrapped:
        process_group = "all"
    distributed = types.SimpleNamespace(get_process_group_ranks=lambda group: [1, 0])
    monkeypatch.setitem(sys.modules, "torch.distributed", distributed)
    model = Wrapped()
    probe.training.watch_ddp(types.SimpleNamespace(DistributedDataParallel=Wrapped))
    for _ in range(2):
        probe.training.adopt(model)
    probe.training.adopt(object())
    assert native.of("note") == [("note", "data_parallel.ranks", "0 1")]


@pytest.mark.parametrize("attributes, wanted", [
    ({}, "unnoticed"), ({"_support_torch_style_backward": False}, "refused"), ({"_support_torch_style_backward": True}, "supported")])
def test_what_an_engine_does_with_torchs_backward_is_asked_of_the_engine(native, attributes, wanted):
    one = engine({})
    for name, value in attributes.items():
        setattr(one, name, value)
    facts.note_engine(native, one, 2)
    assert noted(native)["deepspeed.direct_backward.2"] == wanted


class DeepSpeedEngine:
    meanwhile = None                     # what happens while an engine is made

    def __init__(self, args, model):
        self.module = model
        if self.meanwhile:
            type(self).meanwhile()

    forward = backward = step = lambda self: None


@pytest.mark.parametrize("before", ["nothing", "made", "begun"])
def test_a_model_is_numbered_only_where_no_earlier_one_was_missed(probe, native, monkeypatch, before):
    kind = type("DeepSpeedEngine", (DeepSpeedEngine,), {"__init__": DeepSpeedEngine.__init__})
    monkeypatch.setattr(probe.engine, "_created", lambda *_: None)
    monkeypatch.setattr(probe, "numerics", False)

    def watch():
        probe.engine.watch(types.SimpleNamespace(DeepSpeedEngine=kind))
    names = {"weight": 1} if before == "made" else {}
    monkeypatch.setitem(sys.modules, "deepspeed.utils.debug", types.SimpleNamespace(param_names=names))
    if before == "begun":
        kind.meanwhile = watch
        kind(None, Named(weight=parameter(3)))
        kind.meanwhile = None
    else:
        watch()
    kind(None, Named(weight=parameter(4)))
    assert ("parameters.1" in noted(native)) == (before == "nothing") and not native.skipped()


class PartitionedParameterCoordinator:
    def __init__(self, order):
        self.__submodule_order, self.__step_id, self.mode = order, 0, "COMPLETE"

    def is_complete_trace(self):
        return self.mode == "COMPLETE"

    def is_record_trace(self):
        return self.mode == "RECORD"

    def reset_step(self):
        pass

    def fetch_sub_module(self, sub_module, forward):
        pass

    def __all_gather_params(self, params, forward):
        pass

    def _invalidate_trace(self):
        self.mode = "INVALID"

    def trace_prologue(self, sub_module):
        order = self.__submodule_order
        if len(order) <= self.__step_id or order[self.__step_id] is not sub_module:
            self._invalidate_trace()


class Part:
    training = True

    def __init__(self, **parts):
        self.parts = parts

    def named_modules(self):
        return [("", self), *self.parts.items()]

    def parameters(self):
        yield 1


def test_a_broken_trace_is_told_with_both_modules(probe, native, monkeypatch):
    debug = types.SimpleNamespace(module_names={}, param_names={})
    monkeypatch.setitem(sys.modules, "deepspeed.utils.debug", debug)
    graphs = types.SimpleNamespace(_current_graph_task_id=lambda: -1)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(_C=graphs))
    kind = PartitionedParameterCoordinator
    probe.zero3.watch_coordinator(types.SimpleNamespace(PartitionedParameterCoordinator=kind))
    model = Part(first=Part(), second=Part())
    probe.names.add_model(model)
    unknown = Part()
    debug.module_names[unknown] = "plain norm"
    first, second = model.parts["first"], model.parts["second"]
    for order, came in (([first], second), ([], first), ([second], unknown)):
        PartitionedParameterCoordinator(order).trace_prologue(came)
    assert [what[1] for what in native.of("trace_mode")] == [
        "INVALID got=second expected=first", "INVALID got=first expected=-", "INVALID got=plain_norm expected=second"]
    assert not native.skipped()


def test_each_engine_has_a_trace_of_its_own(probe, native):
    actor, critic = PartitionedParameterCoordinator([]), PartitionedParameterCoordinator([])
    critic.mode = "RECORD"
    told = probe.zero3._around_reset(lambda coordinator: None)
    for _ in range(3):
        told(actor)
        told(critic)
    assert [what[1] for what in native.of("trace_mode")] == ["COMPLETE", "RECORD"]


def test_a_broken_trace_says_in_which_pass_it_was_recorded(probe, native, monkeypatch):
    graphs = types.SimpleNamespace(_current_graph_task_id=lambda: -1)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(_C=graphs))
    part = Part()
    fetch = probe.zero3._around_fetch(lambda *_: None)

    def record_complete(coordinator):
        coordinator.mode = {"RECORD": "COMPLETE", "COMPLETE": "COMPLETE"}.get(coordinator.mode, "RECORD")
    reset = probe.zero3._around_reset(record_complete)
    generator, judge = PartitionedParameterCoordinator([part]), PartitionedParameterCoordinator([part])
    for coordinator in (generator, judge):
        coordinator.mode = "INVALID"
        reset(coordinator)
        fetch(coordinator, part, True)
    fetch(judge, part, False)
    reset(generator)
    reset(judge)
    told = [probe.zero3._what_breaks(coordinator, types.SimpleNamespace(f_locals={"sub_module": part}))
            for coordinator in (generator, judge)]
    assert [text.rsplit(" ", 1)[1] for text in told] == ["recorded=forward", "recorded=training"]
