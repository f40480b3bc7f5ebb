"""Acts as soon as a module has been imported by the job; imports nothing itself."""
import sys


def is_loaded(name):
    """True: imported to its end.  None: its import is under way.  False: not imported."""
    module = sys.modules.get(name)
    if module is None:
        return False
    if getattr(getattr(module, "__spec__", None), "_initializing", False):
        return None
    return True


class ImportWatch:
    """A finder that finds nothing itself: it lets the others find, and acts when the module has been executed."""

    def __init__(self, patches):
        self.patches = patches
        self.waiting = {}             # module name: [function(module)]
        self.busy = set()

    def when_imported(self, name, function):
        """function(module) now, or when the module has been imported."""
        if is_loaded(name):
            self.patches.guarded(name, function, sys.modules[name])
            return
        self.waiting.setdefault(name, []).append(function)

    def start(self):
        sys.meta_path.insert(0, self)
        self.patches.on_undo(self.stop)

    def stop(self):
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name, path=None, target=None):
        if name not in self.waiting or name in self.busy:
            return None
        self.busy.add(name)
        try:
            for finder in list(sys.meta_path):
                find = getattr(finder, "find_spec", None)
                if finder is self or find is None:
                    continue
                spec = find(name, path, target)
                if spec is not None:
                    self._act_after(name, spec)
                    return spec
            return None
        finally:
            self.busy.discard(name)

    def _act_after(self, name, spec):
        loader = spec.loader
        original = getattr(loader, "exec_module", None)
        if original is None:
            return

        def exec_module(module):
            if module.__name__ != name:           # a loader that loads several modules
                return original(module)
            try:
                del loader.exec_module            # the instance's own attribute: the class has the real one
            except AttributeError:
                pass
            original(module)
            for function in self.waiting.pop(name, []):
                self.patches.guarded(name, function, module)
        try:
            loader.exec_module = exec_module
        except AttributeError as error:           # a loader that cannot be changed
            self.patches.skip(name, error)
