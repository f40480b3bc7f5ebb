"""The library under test, as the programs of this folder use it."""
import ctypes
import os
import sys

lib = ctypes.CDLL(os.environ["RANK_LIBRARY"])       # calls release the GIL
holding = ctypes.PyDLL(os.environ["RANK_LIBRARY"])  # calls keep it
for name in ("site_text", "stacks_text", "visits_text", "facts_text", "exceptions_text"):
    getattr(lib, name).restype = ctypes.c_char_p
lib.bench.restype = ctypes.c_double
lib.start()


def frames(text):
    rows = [line.split("\t") for line in text.decode().splitlines()]
    return [(file, function, int(line)) for file, function, line in rows]


def site_frames(site):
    return frames(lib.site_text(site))


def real_frames(frame):
    """What Python says: (file, function, line), innermost first."""
    rows = []
    while frame is not None:
        code = frame.f_code
        rows.append((code.co_filename, getattr(code, "co_qualname", code.co_name), frame.f_lineno or 0))
        frame = frame.f_back
    return rows


problems = []
SITE_FRAMES, INNERMOST, WALKED = 64, 56, 96  # core/flight/format.h, core/rank/python_walk.h, pyframes.cpp


def check(case, most=SITE_FRAMES):
    """Reads the call site here and compares it with sys._getframe."""
    line = sys._getframe().f_lineno; site = lib.site()
    real = real_frames(sys._getframe())
    real[0] = real[0][:2] + (line,)
    read = site_frames(site)
    if len(read) != min(len(real), SITE_FRAMES) or read[:most] != real[:most]:
        problems.append("%s: read %r, Python says %r" % (case, read, real))
    if lib.site_truncated(site) != len(real) - len(read):
        problems.append("%s: %d frames left out, not %d" % (case, lib.site_truncated(site), len(real) - len(read)))
    return site


def stacks():
    """[(request, tid, source, truncated, frames)]"""
    found = []
    for block in lib.stacks_text().decode().split("\n\n"):
        if not block.strip():
            continue
        head, _, rest = block.partition("\n")
        request, tid, source, _, truncated = map(int, head.split())
        found.append((request, tid, source, truncated, frames(rest.encode()) if rest else []))
    return found
