"""Data loaders: how long the first one is, and when one is exhausted."""


class Loader:
    def __init__(self, probe):
        self.probe = probe
        self.first = None

    def watch(self, module):
        """torch.utils.data.dataloader"""
        replace = self.probe.patches.replace
        replace(module._BaseDataLoaderIter, "__init__", self._around_begin)
        replace(module._BaseDataLoaderIter, "__next__", self._around_next)

    def _around_begin(self, original):
        guarded = self.probe.patches.guarded

        def begin(iterator, loader, *args, **kwargs):
            original(iterator, loader, *args, **kwargs)
            guarded("data loaders", self._note, loader)
        return begin

    def _note(self, loader):
        if self.first is None:                    # the training loader: it is iterated first
            self.first = id(loader)
            native = self.probe.native
            native.note("loader.length", _length(loader))
            native.note("dataset.length", _length(loader.dataset))

    def _around_next(self, original):
        native, guarded = self.probe.native, self.probe.patches.guarded

        def next_batch(iterator):
            try:
                return original(iterator)
            except StopIteration:
                guarded("data loaders", native.loop_end, _length(iterator))
                raise
        return next_batch


def _length(sized):
    try:
        return str(len(sized))
    except Exception:
        return "unknown"
