"""A short hash of what a batch holds, so that equal batches on several ranks can be told.

Only memory that the host owns is read: tensors on the CPU, a bounded number of bytes of each.  A batch whose tensors
are elsewhere has no hash.
"""
from dshang_probe.digest import hasher

_WHOLE = 4096                 # bytes of a tensor that are read whole; of a longer one as many, in pieces
_PIECE = 64
_MOST_LEAVES = 32
_DEEPEST = 6


def fingerprint(batch, tensor_types):
    """(hash, shapes) as texts; None when nothing of the batch could be read."""
    reading = _Reading(tensor_types)
    reading.add(batch, 0)
    if not reading.read:
        return None
    return reading.digest.hexdigest(), " ".join(reading.shapes)[:160]


class _Reading:
    def __init__(self, tensor_types):
        self.tensor_types = tensor_types
        self.digest = hasher()
        self.shapes = []
        self.leaves, self.read = 0, False

    def add(self, value, depth):
        if depth > _DEEPEST or self.leaves >= _MOST_LEAVES:
            return
        if type(value) in self.tensor_types:
            self.leaves += 1
            self._add_tensor(value)
        elif isinstance(value, (str, bytes)):
            self.leaves += 1
            self.read = True
            self.digest.update((value.encode("utf-8", "replace") if isinstance(value, str) else value)[:_WHOLE] + b"\0")
        elif isinstance(value, (int, float)):
            self.leaves += 1
            self.digest.update(repr(value).encode() + b"\0")
        elif isinstance(value, (list, tuple)):
            for part in value[:_MOST_LEAVES]:
                self.add(part, depth + 1)
        elif hasattr(value, "keys") and hasattr(value, "__getitem__"):      # also the batches of tokenizers
            for key in list(value.keys())[:_MOST_LEAVES]:
                self.add(value[key], depth + 1)

    def _add_tensor(self, tensor):
        import ctypes                                                       # torch has imported it
        kind = str(tensor.dtype).rsplit(".", 1)[-1]
        self.shapes.append("%s[%s]" % (kind, ",".join(str(size) for size in tensor.shape)))
        length = tensor.numel() * tensor.element_size()
        if tensor.device.type != "cpu" or str(tensor.layout) != "torch.strided" or not tensor.is_contiguous():
            return
        address = tensor.data_ptr()
        if not address or not length:
            return
        self.read = True
        self.digest.update(self.shapes[-1].encode())
        if length <= _WHOLE:
            self.digest.update(ctypes.string_at(address, length))
            return
        pieces = _WHOLE // _PIECE
        for piece in range(pieces):
            self.digest.update(ctypes.string_at(address + (length - _PIECE) * piece // (pieces - 1), _PIECE))
