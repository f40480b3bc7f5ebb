"""Stands in for the probe: says one of everything through its native side."""
import sys

asked = 0


def seen_from_inside():
    return native_object.visit(names["layer"], names["forward"], 1)


def arm(native):
    global asked, native_object, names
    asked += 1
    if asked == 1:
        return False  # not a good moment
    native_object = native
    names = {text: native.intern(text) for text in ("layer", "forward", "backward", "COMPLETE", "1 2 3", "ValueError")}
    assert native.intern("layer") == names["layer"] and native.intern("") == 0
    code = compile(sources["helper"], "<dshang>/helper.py", "exec")
    helper = type(sys)("dshang_probe.helper")
    helper.__file__ = code.co_filename
    sys.modules["dshang_probe.helper"] = helper
    sys.modules[__name__].helper = helper
    exec(code, helper.__dict__)
    native.note("probe.armed", "größe")
    return True


def say_everything():
    native, n = native_object, names
    native.memory(2000, 1000)
    native.step(7)
    native.micro_step(2)
    native.phase_push(n["forward"])
    native.visit(n["layer"], n["forward"], 1)
    native.gather(2 ** 64 - 5, n["1 2 3"])
    native.exit_module()
    native.phase_pop()
    native.visit(n["layer"], n["backward"], 0)
    native.exception(n["ValueError"], "a message", "train.py", "main", 33)
    native.trace_mode(n["COMPLETE"])
    native.loop_end("12")
    # Nothing of this raises.
    native.visit()
    native.visit("text", None, [])
    native.step("text")
    native.note(1, 2)
    native.note("key")
    native.intern(None)
    native.phase_push(12345)
    native.phase_pop()
    native.exception(1, 2, 3, 4, 5)
    native.gather(-1, -1)
    native.exit_module()
    native.teardown()
