"""A short hash of what a batch holds, so that equal batches on several ranks can be told.

Only memory that the host owns is read: tensors on the CPU, a bounded number of bytes of each.  A batch with a tensor
that is elsewhere or has gaps, or with an unknown object, has no hash: what it differs in may be there.  Containers are
read as the interpreter stores them: one that makes its values when it is asked for them is not asked.
"""
from itertools import islice

from dshang_probe.digest import hasher
from dshang_probe.known import is_known, own_attribute

_WHOLE = 4096                 # bytes of a tensor that are read whole; of a longer one as many, in pieces
_PIECE = 64
_MOST_LEAVES = 32
_DEEPEST = 6
_MOST_SIZES = 4


def fingerprint(batch, tensor_types):
    """(hash, shapes) as texts; None when nothing of the batch could be read."""
    reading = _Reading(tensor_types)
    reading.add(batch, 0)
    if reading.unread or not reading.read:
        return None
    return reading.digest.hexdigest(), " ".join(reading.shapes)[:160]


def largest(value, tensor_types, depth=0):
    """The sizes of the largest tensor in a batch, at most four of them; () if there is none.  Nothing is read."""
    kind = type(value)
    if kind in tensor_types:
        return tuple(value.shape)[:_MOST_SIZES]
    if depth > 3 or value is None or not is_known(kind, "__getitem__"):
        return ()
    found, elements = (), 0
    for part in _parts(value, kind) or ():
        sizes = largest(part, tensor_types, depth + 1)
        count = 1 if sizes else 0
        for size in sizes:
            count *= size
        if count > elements:
            found, elements = sizes, count
    return found


class _Reading:
    def __init__(self, tensor_types):
        self.tensor_types = tensor_types
        self.digest = hasher()
        self.shapes = []
        self.leaves, self.read, self.unread = 0, False, False

    def add(self, value, depth):
        if depth > _DEEPEST or self.leaves >= _MOST_LEAVES:
            return
        kind = type(value)
        if kind in self.tensor_types:
            self.leaves += 1
            self._add_tensor(value)
        elif kind in (str, bytes):
            self.leaves += 1
            self.read = True
            self.digest.update((value.encode("utf-8", "replace") if kind is str else value)[:_WHOLE] + b"\0")
        elif kind in (int, float, bool):
            self.leaves += 1
            self.digest.update(repr(value).encode() + b"\0")
        elif value is not None:
            parts = _parts(value, kind) if is_known(kind, "__getitem__") else None
            if parts is None:
                self.unread = True
            for part in parts or ():
                self.add(part, depth + 1)

    def _add_tensor(self, tensor):
        import ctypes                                                       # torch has imported it
        kind = str(tensor.dtype).rsplit(".", 1)[-1]
        self.shapes.append("%s[%s]" % (kind, ",".join(str(size) for size in tensor.shape)))
        length = tensor.numel() * tensor.element_size()
        if length == 0:
            return
        readable = tensor.device.type == "cpu" and str(tensor.layout) == "torch.strided" and has_no_gaps(tensor)
        address = tensor.data_ptr() if readable else 0
        if not address:
            self.unread = True
            return
        self.read = True
        self.digest.update(self.shapes[-1].encode())
        if length <= _WHOLE:
            self.digest.update(ctypes.string_at(address, length))
            return
        pieces = _WHOLE // _PIECE
        for piece in range(pieces):
            self.digest.update(ctypes.string_at(address + (length - _PIECE) * piece // (pieces - 1), _PIECE))


def has_no_gaps(tensor):
    """Whether its elements lie side by side, in whatever order of the dimensions (channels_last)."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def _parts(value, kind):
    """The first of what a container holds; None: it is none."""
    if issubclass(kind, list):
        return list.__getitem__(value, slice(_MOST_LEAVES))
    if issubclass(kind, tuple):
        return tuple.__getitem__(value, slice(_MOST_LEAVES))
    held = value if issubclass(kind, dict) else own_attribute(value, "data")     # UserDict: the batches of tokenizers
    return list(islice(dict.values(held), _MOST_LEAVES)) if issubclass(type(held), dict) else None
