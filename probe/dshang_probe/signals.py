"""Telling what a signal's handler raised in the middle of the probe's code from the probe's own failures."""
import sys


def raised_by_handler(error):
    """A Ctrl-C or a time-out of the program: it must reach the program."""
    if not isinstance(error, Exception):
        return True
    signal = sys.modules.get("signal")
    if signal is None:
        return False
    codes = _codes(signal)
    trace = error.__traceback__
    while trace is not None and codes:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


def _codes(signal):
    codes = set()
    for number in range(1, signal.NSIG):
        handler = signal.getsignal(number)
        handler = getattr(handler, "func", handler)                                  # functools.partial
        if not hasattr(handler, "__code__") and not hasattr(handler, "__func__"):
            handler = getattr(type(handler), "__call__", None)
        code = getattr(getattr(handler, "__func__", handler), "__code__", None)
        if code is not None:
            codes.add(code)
    return codes
