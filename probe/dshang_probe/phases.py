"""The phase stack of each thread: forward, backward, optimizer, init, save, load, gather."""
import threading

from dshang_probe.errors import without_own_frame


class Phases:
    def __init__(self, native, names, errors, patches):
        self.native, self.names, self.errors, self.patches = native, names, errors, patches
        self.local = threading.local()

    def stack(self):
        try:
            return self.local.stack
        except AttributeError:
            self.local.stack = []
            return self.local.stack

    def push(self, name):
        """Enters a phase; False: this thread is in it already, and there is nothing to pop.  Never raises."""
        return bool(self.patches.guarded("phases", self._push, name))

    def _push(self, name):
        stack = self.stack()
        if stack and stack[-1] == name:
            return False
        self.native.phase_push(self.names.intern(name))
        stack.append(name)
        return True

    def pop(self, name):
        """Leaves a phase, and those above it that nobody left (an exception passed by).  Never raises."""
        self.patches.guarded("phases", self._pop, name)

    def _pop(self, name):
        stack = self.stack()
        while name in stack:
            top = stack.pop()
            self.native.phase_pop()
            if top == name:
                return

    def inside(self, name):
        return name in self.stack()

    def around(self, name, before=None, after=None, given=None):
        """Makes wrappers that are in phase `name` while the original runs.

        before(self) and given(arguments, named ones) run first, after(self) when the original has returned; none of them
        can hurt the call."""
        guarded, label = self.patches.guarded, "phase " + name

        def make(original):
            def in_phase(*args, **kwargs):
                if before is not None:
                    guarded(label, before, *args[:1])
                if given is not None:
                    guarded(label, given, args, kwargs)
                mine = self.push(name)
                try:
                    result = original(*args, **kwargs)
                except BaseException as error:
                    self.errors.record(error)
                    without_own_frame(error)
                    raise
                finally:
                    if mine:
                        self.pop(name)
                if after is not None:
                    guarded(label, after, *args[:1])
                return result
            return in_phase
        return make
