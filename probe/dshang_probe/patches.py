"""Replacing functions of other packages, each on its own: one that fails is named once and left out."""
import functools
import sys

from dshang_probe.signals import raised_by_handler

_ABSENT = object()


class Patches:
    """What was replaced and how to put it back.

    Groups: "inner" is code that a compiler may trace; it comes off as soon as one is used (compiled.py).
    "outer" stays until the end.
    """

    def __init__(self, native):
        self.native = native
        self.undo_steps = []          # (group, function)
        self.skipped = set()

    def skip(self, name, error):
        """Says once that `name` is not observed, and why."""
        if name in self.skipped:
            return
        self.skipped.add(name)
        text = "%s: %s" % (type(error).__name__, error) if isinstance(error, BaseException) else str(error)
        try:
            self.native.note("probe.skipped." + name, text[:500])
            sys.stderr.write("dshang: probe: %s is not observed (%s)\n" % (name, text[:200]))
        except Exception:
            pass

    def guarded(self, name, function, *args):
        """function(*args); a failure is named and swallowed."""
        try:
            return function(*args)
        except Exception as error:
            if raised_by_handler(error):
                raise
            self.skip(name, error)
            return None

    def replace(self, owner, attribute, make, group="outer", optional=False, also=()):
        """owner.attribute = make(its present value).  `optional`: other versions do not have it.

        `also`: modules that offer the same function.  They get the same wrapper, so that it can still be pickled by
        its name (a dataset that keeps torch.load and goes to a worker)."""
        name = "%s.%s" % (getattr(owner, "__name__", owner), attribute)
        original = getattr(owner, attribute, _ABSENT)
        if original is _ABSENT:
            if not optional:
                self.skip(name, "this version does not have it")
            return False
        return bool(self.guarded(name, self._replace, (owner,) + tuple(also), attribute, original, make, group))

    def _replace(self, owners, attribute, original, make, group):
        wrapper = make(original)
        try:
            functools.update_wrapper(wrapper, original)
        except Exception:
            pass
        for owner in owners:
            if getattr(owner, attribute, None) is original:
                own = attribute in getattr(owner, "__dict__", {})
                setattr(owner, attribute, wrapper)
                self.undo_steps.append((group, _put_back(owner, attribute, wrapper, original, own)))
        return True

    def on_undo(self, function, group="outer"):
        self.undo_steps.append((group, function))

    def undo(self, group=None):
        """Takes the patches of a group (None: all) off, the newest first."""
        going = [step for step in self.undo_steps if group in (None, step[0])]
        self.undo_steps = [step for step in self.undo_steps if group not in (None, step[0])]
        for _, function in reversed(going):
            self.guarded("undo", function)


def _put_back(owner, attribute, wrapper, original, own):
    def undo():
        if getattr(owner, attribute, None) is not wrapper:
            return                    # somebody else wrapped it since: leave theirs
        if own:
            setattr(owner, attribute, original)
        else:
            delattr(owner, attribute)
    return undo
