# Run once by libdshang.so in a pending call (core/rank/arm.cpp).  Imports nothing.


def check(frames, getframe, jit):
    """Compares what the library reads from this thread's frames with what Python says; None or the difference."""

    def compare():
        line = getframe().f_lineno; seen = frames()
        frame, expected = getframe(), []
        while frame is not None and len(expected) < len(seen):
            code = frame.f_code
            expected.append((code.co_filename, getattr(code, "co_qualname", code.co_name), frame.f_lineno or 0))
            frame = frame.f_back
        if not expected:
            return "no frames were read"
        expected[0] = expected[0][:2] + (line,)
        if len(seen) > len(expected):
            return "%d frames were read, there are %d" % (len(seen), len(expected))
        for read, real in zip(seen, expected):
            if not real[0].isascii():   # undecodable bytes of a path have no text
                read, real = read[1:], real[1:]
            if read != real:
                return "read %r, Python says %r" % (read, real)
        if frame is not None and len(seen) < 64:
            return "%d frames were read, there are more" % len(seen)

    if jit is not None and jit.is_enabled():
        return "this Python compiles at run time (PYTHON_JIT)"
    return compare() or next(compare() for _ in (0,))


def load(module_type, modules, sources):
    """Makes the probe's package; its other files it runs itself when it is armed."""
    package = module_type("dshang_probe")
    package.__file__ = "<dshang>/__init__.py"
    package.__package__ = "dshang_probe"
    package.__path__ = []
    package.sources = sources
    modules["dshang_probe"] = package
    try:
        exec(compile(sources["__init__"], package.__file__, "exec"), package.__dict__)
    except BaseException:
        del modules["dshang_probe"]
        raise


def arm(modules, native, own_file):
    """True: armed.  False: not a good moment, ask again."""
    done = modules["dshang_probe"].arm(native)
    for name, module in list(modules.items()):
        if name == "dshang_probe" or name.startswith("dshang_probe."):
            own_file(module.__file__)
    return bool(done)


def surfaces(error):
    """Whether it belongs to the program: what a signal's handler raised while these files ran."""
    if not isinstance(error, Exception):
        return True
    trace = error.__traceback__
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith("<dshang>"):
            return True
        trace = trace.tb_next
    return False
