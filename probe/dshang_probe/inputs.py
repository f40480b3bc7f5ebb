"""Batches as they leave a loader: fields that are not finite, and token ids that the model has no row for.

Only tensors on the CPU are looked at, whole; the first batches always, later ones as often as the time allows that it may
take: a small part of the time that passes."""
import re
import time

from dshang_probe.batches import has_no_gaps
from dshang_probe.digest import is_finite
from dshang_probe.known import own_attribute

_ALWAYS = 8                   # batches of each loader
_LARGEST = 1 << 23            # elements of a field
_AT_ONCE = (1 << 15) - 1      # elements that torch sums in one thread: a pool of threads must not be begun here, for a
                              # worker that is forked later could not use it
_SHARE = 0.003                # of the time since the first batch
_MOST_FIELDS = 32
_DEEPEST = 4
_IDS = re.compile(r"^(?!.*(label|target)).*(ids?|tokens?|idx|indices)$|^0$")     # input_ids; the first of a tuple


class Inputs:
    def __init__(self, probe):
        self.probe = probe
        self.begin, self.spent = None, 0.0
        self.told = set()
        self.ranges = {}              # field: (smallest, largest, text of its batch), until the model is known

    def batch(self, batch, number, training):
        """The `number`-th batch (from 0) of a loader; `training`: of the one that feeds training, as far as is known."""
        if not self.probe.numerics:
            return
        now = time.perf_counter()
        self.begin = self.begin or now
        if number >= _ALWAYS and self.spent > _SHARE * (now - self.begin):
            return
        fields = []
        _collect(batch, "", fields, self.probe.torch.Tensor, 0)
        for name, tensor in fields[:_MOST_FIELDS]:
            self._look(name, tensor, number, training)
        self.spent += time.perf_counter() - now

    def _look(self, name, tensor, number, training):
        torch = self.probe.torch
        if tensor.device.type != "cpu" or not 0 < tensor.numel() <= _LARGEST or str(tensor.layout) != "torch.strided" \
                or not has_no_gaps(tensor):
            return
        with torch.no_grad():
            pieces = tensor.as_strided((tensor.numel(),), (1,)).split(_AT_ONCE)
            if tensor.is_floating_point():
                if any(not is_finite(float(piece.sum(dtype=torch.float32))) for piece in pieces):
                    bad = ~torch.isfinite(tensor)         # else they are only large together
                    if bool(bad.any()):
                        self._tell(name, tensor, bad, number, training)
            elif training and tensor.dtype in (torch.int64, torch.int32) and _IDS.search(name):
                ends = [int(end) for piece in pieces for end in torch.aminmax(piece)]
                self._range(name, min(ends), max(ends), tensor, number)

    def _tell(self, name, tensor, bad, number, training):
        key = "nan.batch" if training else "nan.other_batch"
        if key in self.told:
            return
        self.told.add(key)
        self.probe.native.note(key, "batch=%d field=%s kind=%s bad=%d of=%d samples=%s step=%s" % (
            number, name or "-", _shape(tensor), int(bad.sum()), tensor.numel(), _samples(bad),
            self.probe.steps.announced))

    def _range(self, name, smallest, largest, tensor, number):
        rows = self.probe.names.rows
        if rows is None:                                  # no model is known yet
            known = self.ranges.get(name)
            if known is None or largest > known[1] or smallest < known[0]:
                self.ranges[name] = (smallest, largest, tensor, number)
            return
        if rows and (smallest < 0 or largest >= rows) and "ids" not in self.told:
            self.told.add("ids")
            self.probe.native.note("ids.range", "batch=%d field=%s kind=%s smallest=%d largest=%d rows=%d samples=%s step=%s" % (
                number, name or "-", _shape(tensor), smallest, largest, rows,
                _samples((tensor < 0) | (tensor >= rows)), self.probe.steps.announced))

    def model_is_known(self):
        ranges, self.ranges = self.ranges, {}
        for name, (smallest, largest, tensor, number) in ranges.items():
            self._range(name, smallest, largest, tensor, number)


def _shape(tensor):
    return "%s[%s]" % (str(tensor.dtype).rsplit(".", 1)[-1], ",".join(str(size) for size in tensor.shape))


def _samples(bad):
    """Which samples of the batch: "1,3"."""
    if bad.dim() == 0:
        return "-"
    rows = bad.reshape(bad.shape[0], -1).any(dim=1).nonzero().reshape(-1).tolist()
    return ",".join(str(row) for row in rows[:8]) + (",..." if len(rows) > 8 else "")


def _collect(value, name, fields, tensor_type, depth):
    """Appends (name, tensor) of what a container holds; positions are names, too."""
    kind = type(value)
    if kind is tensor_type:
        fields.append((name, value))
    elif depth < _DEEPEST and len(fields) < _MOST_FIELDS:
        held = value if issubclass(kind, dict) else own_attribute(value, "data")
        if issubclass(type(held), dict):
            parts = [(str(key), part) for key, part in list(dict.items(held))[:_MOST_FIELDS]]
        elif issubclass(kind, (list, tuple)):             # as the interpreter stores it: nothing of the program's runs
            first = (list if issubclass(kind, list) else tuple).__getitem__(value, slice(_MOST_FIELDS))
            parts = [(str(position), part) for position, part in enumerate(first)]
        else:
            return
        for key, part in parts:
            _collect(part, name + "." + key if name else key, fields, tensor_type, depth + 1)
