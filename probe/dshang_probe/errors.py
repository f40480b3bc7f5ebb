"""The exceptions of this rank: those nobody caught, and those that left a framework call (they may be swallowed later)."""
import sys
import threading

_NOT_ERRORS = (StopIteration, GeneratorExit, SystemExit)


def _is_library(filename):
    return filename.startswith("<") or "site-packages" in filename or "dist-packages" in filename or (
        _STDLIB and filename.startswith(_STDLIB))


_STDLIB = getattr(sys.modules.get("os"), "__file__", "") or ""
_STDLIB = _STDLIB[:-len("os.py")] if _STDLIB.endswith("os.py") else ""


def place_of(traceback):
    """(file, function, line) of the innermost frame of the user's own code, else of the innermost frame."""
    innermost = own = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        innermost = (code.co_filename, code.co_name, traceback.tb_lineno)
        if not _is_library(code.co_filename):
            own = innermost
        traceback = traceback.tb_next
    return own or innermost or ("", "", 0)


def user_place(frame):
    """"file:line function" of the innermost frame of the user's own code, "" if there is none."""
    while frame is not None:
        code = frame.f_code
        own = str(frame.f_globals.get("__name__")).startswith("dshang_probe")
        if not own and not _is_library(code.co_filename):
            path = code.co_filename.replace("\\", "/").split("/")
            return "%s:%d %s" % ("/".join(path[-2:]), frame.f_lineno, code.co_name)
        frame = frame.f_back
    return ""


class Errors:
    def __init__(self, native, names, patches):
        self.native, self.names, self.patches = native, names, patches
        self.last = None

    def record(self, error, traceback=None):
        """Records an exception once, however many calls it leaves."""
        if isinstance(error, _NOT_ERRORS):
            return
        try:
            message = str(error)[:1000]
            identity = (id(error), type(error), message)
            if identity == self.last:
                return
            self.last = identity
            file, function, line = place_of(traceback or error.__traceback__)
            kind = type(error)
            name = kind.__name__ if kind.__module__ == "builtins" else kind.__module__ + "." + kind.__name__
            self.native.exception(self.names.intern(name), self.names.intern(message), file, function, line)
        except Exception as problem:
            self.patches.skip("exceptions", problem)

    def watch_uncaught(self):
        """Chains into the hooks that print an uncaught exception."""
        record, guarded, note = self.record, self.patches.guarded, self.native.note

        def around(previous):
            def excepthook(kind, error, traceback):
                record(error, traceback)
                guarded("exceptions", note, "exception.uncaught", getattr(kind, "__name__", "?"))
                return previous(kind, error, traceback)
            return excepthook

        def around_thread(previous):
            def thread_excepthook(arguments):
                if arguments.exc_value is not None:
                    record(arguments.exc_value, arguments.exc_traceback)
                return previous(arguments)
            return thread_excepthook
        self.patches.replace(sys, "excepthook", around)
        self.patches.replace(threading, "excepthook", around_thread, optional=True)


def without_own_frame(error):
    """Drops the frame of the calling wrapper from a traceback that is about to be raised again (it takes effect from
    Python 3.11 on), so that the job's own output shows no line of ours."""
    traceback = error.__traceback__
    if traceback is not None and traceback.tb_next is not None:
        error.__traceback__ = traceback.tb_next
