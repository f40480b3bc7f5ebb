"""Data loaders: which one feeds the training steps, how long it is, who samples for it, what its first batches
hold, and when one is exhausted."""
import weakref

from dshang_probe.batches import fingerprint

_BATCHES = 8                  # of the training loader, from its first: enough to see equal ones in a row


class Reading:
    """What is known of one loader, over all loops over it."""

    def __init__(self, loader):
        self.facts = _describe(loader)
        self.batches = []             # (hash, shapes) or None of the first ones
        self.told = 0


class Loader:
    def __init__(self, probe):
        self.probe = probe
        self.readings = weakref.WeakKeyDictionary()    # by loader
        self.open = weakref.WeakKeyDictionary()        # by iterator
        self.newest = None            # whose batch was taken last
        self.training = None          # whose batch the first training step took

    def watch(self, module):
        """torch.utils.data.dataloader"""
        replace = self.probe.patches.replace
        replace(module._BaseDataLoaderIter, "__init__", self._around_begin)
        replace(module._BaseDataLoaderIter, "__next__", self._around_next)

    def _around_begin(self, original):
        guarded = self.probe.patches.guarded

        def begin(iterator, loader, *args, **kwargs):
            original(iterator, loader, *args, **kwargs)
            guarded("data loaders", self._begins, iterator, loader)
        return begin

    def _begins(self, iterator, loader):
        reading = self.readings.get(loader)
        if reading is None:
            reading = self.readings[loader] = Reading(loader)
        self.open[iterator] = reading

    def _around_next(self, original):
        native, guarded, read = self.probe.native, self.probe.patches.guarded, self._read

        def next_batch(iterator):
            try:
                batch = original(iterator)
            except StopIteration:
                guarded("data loaders", native.loop_end, _length(iterator))
                raise
            guarded("batches", read, iterator, batch)
            return batch
        return next_batch

    def _read(self, iterator, batch):
        reading = self.open.get(iterator)
        if reading is None:
            return
        self.newest = reading
        if len(reading.batches) >= _BATCHES or self.training not in (None, reading):
            return
        torch = self.probe.torch
        reading.batches.append(fingerprint(batch, (torch.Tensor, torch.nn.Parameter)))

    def step_begins(self, step):
        """The loader whose batch was taken last before the first training step is the one that feeds training; another
        one may have been read before (a look at the data, a validation on rank 0)."""
        reading = self.training
        if reading is None:
            reading = self.training = self.newest
            if reading is None:
                return
            note = self.probe.native.note
            for key, value in reading.facts.items():
                note(key, value)
            note("loader.first_step", str(step))
        while reading.told < len(reading.batches):
            print_of = reading.batches[reading.told]
            self.probe.native.note("batch.%d" % reading.told, ("%s %s" % print_of).strip() if print_of else "unread")
            reading.told += 1


def _describe(loader):
    facts = {"loader.length": _length(loader), "dataset.length": _length(loader.dataset)}
    sampler = getattr(loader, "sampler", None)
    batches = getattr(loader, "batch_sampler", None)
    if type(batches).__name__ not in ("BatchSampler", "NoneType"):      # one of the job's own: it decides
        sampler = batches
    if sampler is not None:
        text = type(sampler).__name__
        for attribute in ("num_replicas", "rank", "num_processes", "process_index", "drop_last"):
            value = getattr(sampler, attribute, None)
            if isinstance(value, int):
                text += " %s=%s" % (attribute, value)
        facts["loader.sampler"] = text[:200]
    if isinstance(getattr(loader, "batch_size", None), int):
        facts["loader.batch_size"] = str(loader.batch_size)
    return facts


def _length(sized):
    # torch remembers that an iterable data set was asked for its length, and warns later because of it.
    asked = "_IterableDataset_len_called"
    before = sized.__dict__[asked] if asked in getattr(sized, "__dict__", ()) else None
    try:
        return str(len(sized))
    except Exception:
        return "unknown"
    finally:
        if asked in getattr(sized, "__dict__", ()) and sized.__dict__[asked] is not before:
            sized.__dict__[asked] = before
