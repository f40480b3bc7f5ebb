"""Data loaders: which one feeds the training steps, how long it is, who samples for it, what its first batches
hold, and when one is exhausted."""
import weakref

from dshang_probe.batches import fingerprint, largest
from dshang_probe.errors import without_own_frame
from dshang_probe.known import is_known, own_attribute

_BY_INDEX = 0                 # torch.utils.data.dataloader._DatasetKind.Map
_BATCHES = 8                  # of the training loader, from its first: enough to see equal ones in a row


class Reading:
    """What is known of one loader, over all loops over it."""

    def __init__(self, loader):
        self.facts = _describe(loader)
        self.number = None            # of the batch that was taken last, from 0 in each loop
        self.batches = []             # (hash, shapes) or None of the first ones
        self.told = 0


class Loader:
    def __init__(self, probe):
        self.probe = probe
        self.readings = weakref.WeakKeyDictionary()    # by loader
        self.open = weakref.WeakKeyDictionary()        # by iterator
        self.newest = None            # whose batch was taken last
        self.sizes = ()               # of the largest tensor of that batch
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
                guarded("data loaders", native.loop_end, _taken(iterator))
                raise
            except BaseException as error:
                without_own_frame(error)
                raise
            guarded("batches", read, iterator, batch)
            return batch
        return next_batch

    def _read(self, iterator, batch):
        reading = self.open.get(iterator)
        if reading is None:
            return
        self.newest = reading
        self.sizes = largest(batch, self.probe.tensor_types)
        count = own_attribute(iterator, "_num_yielded")
        if isinstance(count, int):
            reading.number = count - 1
            self.probe.patches.guarded("values of batches", self.probe.inputs.batch, batch, reading.number,
                                       self.training in (None, reading))
        if len(reading.batches) >= _BATCHES or self.training not in (None, reading):
            return
        torch = self.probe.torch
        reading.batches.append(fingerprint(batch, (torch.Tensor, torch.nn.Parameter)))

    def taken(self):
        """The number of the training loader's batch that was taken last, "-" where it is not known."""
        return "-" if self.training is None or self.training.number is None else str(self.training.number)

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


def _taken(iterator):
    """How many batches came from it."""
    count = own_attribute(iterator, "_num_yielded")
    return str(count) if isinstance(count, int) else ""


def _describe(loader):
    dataset = own_attribute(loader, "dataset")
    batches, sampler = own_attribute(loader, "batch_sampler"), own_attribute(loader, "sampler")
    decides = sampler if batches is None else batches
    countable = own_attribute(loader, "_dataset_kind") == _BY_INDEX and _is_countable(decides)
    facts = {"loader.length": _length(loader, countable and is_known(type(loader), "__len__")),
             "dataset.length": _length(dataset, countable)}
    if type(decides).__name__ != "BatchSampler":                        # one of the job's own, or none
        sampler = decides
    if sampler is not None:
        text = type(sampler).__name__
        for attribute in ("num_replicas", "rank", "num_processes", "process_index", "drop_last"):
            value = own_attribute(sampler, attribute)
            if isinstance(value, int):
                text += " %s=%s" % (attribute, value)
        facts["loader.sampler"] = text[:200]
    if isinstance(own_attribute(loader, "batch_size"), int):
        facts["loader.batch_size"] = str(own_attribute(loader, "batch_size"))
    return facts


def _is_countable(sampler):
    """Whether len() of it runs nothing of the program's but the length of a data set read by index, which torch's
    samplers ask for themselves at each epoch."""
    for _ in range(8):                                                  # samplers in samplers
        if sampler is None:
            return True
        if not is_known(type(sampler), "__len__"):
            return False
        inner = own_attribute(sampler, "batch_sampler")
        sampler = own_attribute(sampler, "sampler") if inner is None else inner
    return False


def _length(sized, countable):
    try:
        return str(len(sized)) if countable else "unknown"
    except Exception:
        return "unknown"
