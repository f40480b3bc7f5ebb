"""The parts of the probe, each on its own."""
import functools
import gc
import signal
import sys
import threading
import types

import pytest
from dshang_probe.errors import place_of
from dshang_probe.imports import ImportWatch
from dshang_probe.names import _gather_text
from dshang_probe.patches import Patches


def test_equal_texts_are_handed_over_once(probe, native):
    calls = []
    native.intern = lambda text: calls.append(text) or len(calls)
    assert [probe.names.intern(t) for t in ("a", "b", "a")] == [1, 2, 1]
    assert calls == ["a", "b"]


@pytest.mark.parametrize("numbers, text", [
    ((7,), "ids 7 (head)"),
    ((1, 2, 3), "ids 1-3 (first ... third)"),
    ((1, 3, 5, 6), "ids 1 3 5-6 (first)"),
    (tuple(range(0, 40, 2)), "ids 0 2 4 6 8 10 12 14 16 18 20 22 ..."),
])
def test_ids_are_told_as_ranges(numbers, text):
    assert _gather_text(numbers, {7: "head", 1: "first", 3: "third"}) == text


def test_how_the_allocator_was_told_to_work_is_noted_once(probe, native, monkeypatch):
    nothing = {"allocated_bytes": {"all": {"current": 1, "peak": 1}}, "reserved_bytes": {"all": {"current": 2}}}
    cuda = types.SimpleNamespace(is_initialized=lambda: False, memory_stats_as_nested_dict=lambda: nothing)
    monkeypatch.setitem(sys.modules, "torch.cuda", cuda)
    monkeypatch.delenv("PYTORCH_ALLOC_CONF", raising=False)
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:512, expandable_segments:True")
    probe.memory.sample("forward")
    assert not native.of("note")                   # a program may still set it
    cuda.is_initialized = lambda: True
    probe.memory.sample("forward")
    probe.memory.sample("backward")
    assert native.of("note") == [("note", "torch.allocator", "max_split_size_mb:512,expandable_segments:True")]


class Part:
    """A module of torch, as far as naming goes."""

    def __init__(self, **parts):
        self.parts = parts

    def named_modules(self, prefix=""):
        yield prefix, self
        for name, part in self.parts.items():
            yield from part.named_modules(prefix + "." + name if prefix else name)

    def parameters(self):
        yield "weight"


class DistributedDataParallel(Part):
    module = property(lambda self: self.parts["module"])


def test_modules_have_the_names_that_the_user_gave(probe, native):
    inner = Part(submodule=Part(module=Part()), wrapped=Part(_fsdp_wrapped_module=Part(fc=Part())))
    model = DistributedDataParallel(module=inner)
    probe.names.add_model(model)

    def named(module):
        return native.texts[probe.names.of_module(module).id]
    assert named(inner) == "Part" and named(model) == "" and probe.names.of_module(model).root
    assert named(inner.parts["submodule"].parts["module"]) == "submodule.module"
    assert named(inner.parts["wrapped"].parts["_fsdp_wrapped_module"].parts["fc"]) == "wrapped.fc"
    second = Part(head=Part())
    probe.names.add_model(second)
    assert named(second.parts["head"]) == "Part.head"


def test_a_module_that_is_gone_is_forgotten(probe):
    model = Part(head=Part())
    probe.names.add_model(model)
    assert len(probe.names.modules) == 2
    del model
    gc.collect()
    assert probe.names.modules == {}


def test_equal_gathers_have_equal_hashes(probe):
    first, text = probe.names.add_gather((1, 2, 3), {})
    assert probe.names.gathers[(1, 2, 3)] == (first, text)
    assert probe.names.add_gather((1, 2, 4), {})[0] != first
    assert first == 529344067295497451                              # in every process, on every Python


def test_phases_nest_and_repeat(probe, native):
    phases = probe.phases
    inner = phases.around("backward")(lambda: native._say("work"))
    outer = phases.around("backward")(inner)
    outer()
    assert [w[0] for w in native.said] == ["push", "work", "pop"]      # the same phase twice is one


def test_a_phase_ends_with_its_exception(probe, native):
    def fail():
        phases.push("gather")                                          # left open by an exception
        raise ValueError("broken")
    phases = probe.phases
    with pytest.raises(ValueError):
        phases.around("save")(fail)()
    assert [w[0] for w in native.of("push", "pop")] == ["push", "push", "pop", "pop"]
    [(_, kind, message, file, function, line)] = native.of("exception")
    assert (kind, message, function) == ("ValueError", "broken", "fail") and file == __file__ and line > 0
    assert phases.stack() == []


def test_phases_are_those_of_a_thread(probe):
    probe.phases.push("forward")
    seen = []
    thread = threading.Thread(target=lambda: seen.append(probe.phases.inside("forward")))
    thread.start()
    thread.join()
    assert seen == [False] and probe.phases.inside("forward")


def test_before_and_after_cannot_hurt_the_call(probe, native):
    def fail(*_):
        raise RuntimeError("mine")
    wrapped = probe.phases.around("forward", before=fail, after=fail)(lambda: 42)
    assert wrapped() == 42 and wrapped() == 42
    assert len(native.skipped()) == 1                                  # said once


def test_an_exception_is_recorded_once_on_its_way_out(probe, native):
    inner = probe.phases.around("forward")(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        probe.phases.around("save")(inner)()
    assert len(native.of("exception")) == 1


def test_stop_iteration_is_no_error(probe, native):
    with pytest.raises(StopIteration):
        probe.phases.around("forward")(lambda: next(iter(())))()
    assert native.of("exception") == []


def test_the_place_of_an_exception_is_the_users(tmp_path):
    library = tmp_path / "site-packages" / "library.py"
    library.parent.mkdir()
    library.write_text("def work():\n    raise KeyError('x')\n")
    user = tmp_path / "train.py"
    user.write_text("def main(work):\n    work()\n")
    scope, library_scope = {}, {}
    exec(compile(library.read_text(), str(library), "exec"), library_scope)
    exec(compile(user.read_text(), str(user), "exec"), scope)
    with pytest.raises(KeyError) as caught:
        scope["main"](library_scope["work"])
    traceback = caught.value.__traceback__.tb_next                     # without this test's own frame
    assert place_of(traceback) == (str(user), "main", 2)


def test_uncaught_exceptions_are_recorded_and_printed(probe, native, capsys):
    probe.errors.watch_uncaught()
    try:
        raise OSError("no disk")
    except OSError as error:
        sys.excepthook(OSError, error, error.__traceback__)
    assert native.of("exception")[0][1:3] == ("OSError", "no disk")
    assert ("note", "exception.uncaught", "OSError") in native.of("note")
    assert "OSError: no disk" in capsys.readouterr().err


def test_a_missing_function_is_named_once_and_left_out(probe, native):
    owner = types.SimpleNamespace(__name__="owner", there=lambda: 1)
    assert not probe.patches.replace(owner, "gone", lambda f: f)
    assert not probe.patches.replace(owner, "gone", lambda f: f)
    assert probe.patches.replace(owner, "there", lambda original: lambda: original() + 1)
    assert owner.there() == 2 and len(native.skipped()) == 1
    probe.patches.undo()
    assert owner.there() == 1


def test_a_patch_under_somebody_elses_stays(probe):
    owner = types.SimpleNamespace(work=lambda: 1)
    probe.patches.replace(owner, "work", lambda original: lambda: original() + 1)
    ours = owner.work
    owner.work = lambda: ours() * 10
    probe.patches.undo()
    assert owner.work() == 20


def test_an_inherited_method_is_inherited_again(probe):
    class Base:
        def work(self):
            return 1

    class Derived(Base):
        pass
    probe.patches.replace(Derived, "work", lambda original: lambda self: original(self) + 1)
    assert Derived().work() == 2 and Base().work() == 1
    probe.patches.undo()
    assert Derived().work() == 1 and "work" not in Derived.__dict__


@pytest.fixture
def on_path(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("watched_"):
            del sys.modules[name]


def test_acts_when_a_module_has_been_imported(probe, on_path):
    (on_path / "watched_later.py").write_text("value = 1\n")
    watch, seen = ImportWatch(probe.patches), []
    watch.when_imported("watched_later", lambda module: seen.append(module.value))
    watch.start()
    assert seen == [] and "watched_later" not in sys.modules
    import watched_later
    assert seen == [1] and "exec_module" not in vars(watched_later.__spec__.loader)
    watch.when_imported("watched_later", lambda module: seen.append(2))
    assert seen == [1, 2]
    watch.stop()


def test_a_loader_of_several_modules_acts_once(probe, on_path):
    import zipfile
    with zipfile.ZipFile(on_path / "watched_zip.zip", "w") as archive:
        archive.writestr("watched_one.py", "import watched_two\n")
        archive.writestr("watched_two.py", "value = 2\n")
    sys.path.insert(0, str(on_path / "watched_zip.zip"))
    watch, seen = ImportWatch(probe.patches), []
    watch.when_imported("watched_one", lambda module: seen.append(module.__name__))
    watch.when_imported("watched_two", lambda module: seen.append(module.__name__))
    watch.start()
    import watched_one                                                 # noqa: F401
    assert seen == ["watched_two", "watched_one"]
    watch.stop()


def test_a_failing_import_fails_as_before(probe, on_path):
    (on_path / "watched_broken.py").write_text("raise LookupError('as before')\n")
    watch = ImportWatch(probe.patches)
    watch.when_imported("watched_broken", lambda module: None)
    watch.when_imported("watched_absent", lambda module: None)
    watch.start()
    with pytest.raises(LookupError):
        import watched_broken                                          # noqa: F401
    with pytest.raises(ModuleNotFoundError):
        import watched_absent                                          # noqa: F401
    watch.stop()


def engine(step=0, micro=0, training=True, optimizer=object()):
    return types.SimpleNamespace(global_steps=step, micro_steps=micro, optimizer=optimizer,
                                 module=types.SimpleNamespace(training=training))


class Weakly(types.SimpleNamespace):
    """SimpleNamespace that can be referenced weakly."""


def test_a_step_begins_at_its_first_training_forward(probe, native):
    job = Weakly(**vars(engine()))
    for _ in range(2):
        for _ in range(2):
            probe.steps.engine_forward(job)
            job.micro_steps += 1
        job.global_steps += 1
    job.module.training = False
    probe.steps.engine_forward(job)                                    # evaluation belongs to the step before
    assert native.said == [("step", 0), ("micro_step", 1), ("step", 1), ("micro_step", 1)]


def test_the_steps_of_a_second_engine_are_its_own(probe, native):
    actor, critic = Weakly(**vars(engine(step=5))), Weakly(**vars(engine(step=900)))
    probe.steps.engine_forward(actor)
    probe.steps.engine_forward(critic)
    assert native.of("step") == [("step", 5)]


def test_plain_steps_are_counted_by_the_first_optimizer(probe, native):
    first, second = Weakly(), Weakly()
    for _ in range(2):
        probe.steps.plain_forward()
        probe.steps.plain_forward()
        probe.steps.optimizer_done(first)
        probe.steps.optimizer_done(second)
    assert native.said == [("step", 0), ("micro_step", 1), ("step", 1), ("micro_step", 1)]


def raise_late(*_):
    raise TimeoutError("of the program")


class Late:
    def __call__(self, *_):
        raise_late()

    def late(self, *_):
        raise_late()


@pytest.mark.parametrize("handler", [raise_late, Late(), Late().late, functools.partial(raise_late, 1),
                                     signal.default_int_handler])
def test_what_a_signals_handler_raises_reaches_the_program(native, handler):
    def interrupted():
        signal.raise_signal(signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with pytest.raises((TimeoutError, KeyboardInterrupt)):
            Patches(native).guarded("interrupted", interrupted)
    finally:
        signal.signal(signal.SIGALRM, before)
    Patches(native).guarded("own", raise_late)
    assert [what[1] for what in native.skipped()] == ["probe.skipped.own"]
