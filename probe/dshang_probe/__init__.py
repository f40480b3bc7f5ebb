"""What dshang knows from inside Python: module visits, steps, phases, gathers, loaders, exceptions.

libdshang.so carries these files and runs them in each rank (docs/probe.md says how); tests import them as an ordinary
package and give a `native` of their own.  Nothing here adds a collective, waits for the device, or raises into the job.
"""
import sys

# Set by the loader of libdshang.so: {file name without .py: source}.  None: an ordinary package on sys.path.
sources = globals().get("sources")

_ORDER = ("signals", "patches", "names", "errors", "phases", "steps", "imports", "known", "digest", "long_notes", "facts", "memory",
          "batches", "structure", "later", "values", "watch", "numbers", "inputs", "zero3", "engine", "modules", "training", "fsdp",
          "loader", "compiled", "configured", "program", "arming")
_arming = None


def _load_sources():
    """Runs the carried files as modules of this package; each finds those before it in sys.modules."""
    package = sys.modules[__name__]
    for name in _ORDER:
        full_name = __name__ + "." + name
        if full_name in sys.modules:
            continue
        module = type(sys)(full_name)
        module.__file__ = "<dshang>/" + name + ".py"
        module.__package__ = __name__
        sys.modules[full_name] = module
        try:
            exec(compile(sources[name], module.__file__, "exec"), module.__dict__)
        except BaseException:
            del sys.modules[full_name]
            raise
        setattr(package, name, module)


def arm(native):
    """Starts observing.  True: done.  False: the moment is bad (a model is being built under zero.Init, torch is half
    imported, a dispatch mode is on); ask again a little later.  Raises nothing but what a signal's handler of the program
    raised meanwhile; then ask again too.  What cannot be observed is named once."""
    global _arming
    try:
        if _arming is None:
            if sources is not None:
                _load_sources()
            from dshang_probe.arming import Arming
            _arming = Arming(native)
        return _arming.try_now()
    except Exception as error:
        signals = sys.modules.get(__name__ + ".signals")
        if signals is not None and signals.raised_by_handler(error):
            raise
        try:
            native.note("probe.skipped.arm", "%s: %s" % (type(error).__name__, error))
        except Exception:
            pass
        return True


def disarm():
    """Takes every patch off again."""
    global _arming
    if _arming is not None:
        _arming.undo()
        _arming = None
