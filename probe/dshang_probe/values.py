"""A few elements of each replicated parameter, so that ranks that begin training with other weights are found.

Looked at twice: when the framework has taken the model over, after its own broadcast, and when the first training step
begins, after whatever the program did in between.  Shards and experts differ by design and are left out."""
import weakref

from dshang_probe.batches import has_no_gaps
from dshang_probe.digest import hasher, short_hash
from dshang_probe.structure import replicated, structure_hash

_MOST = 4096                  # parameters of a first model that are looked at
_MOST_LATER = 512
_CHUNK = 128                  # parameters of a fact
_PIECE = 16                   # bytes at the beginning, in the middle and at the end of a parameter


class Values:
    def __init__(self, probe):
        self.probe = probe
        self.models = []              # [weak reference, key, hash when it was taken over, members] until their first step

    def taken_over(self, model, key, members=""):
        """The framework has taken a model over; `key`: under which its structure was noted; `members`: the ranks that hold
        the same weights."""
        if not self.probe.numerics:
            return
        entry = [weakref.ref(model), key, None, members]
        self.models.append(entry)
        self._look(model, entry, "made")

    def step_begins(self, step):
        models, self.models = self.models, []
        for entry in models:
            model = entry[0]()
            if model is not None:
                self._look(model, entry, "begun")

    def _look(self, model, entry, when):
        """Copies the pieces; when they are there, notes values.<key>.<when> = "<count> <structure and group> <values>" and
        values.<key>.<when>.<first> = the hashes of single parameters, unless nothing changed since `made`."""
        torch, later = self.probe.torch, self.probe.later
        entries, parameters = replicated(model)
        parameters = parameters[:_MOST if entry[1].endswith(".1") else _MOST_LATER]
        wanted = [self._readable(parameter) for parameter in parameters]
        devices = {part.device for part in wanted if part is not None}
        if len(devices) != 1:                         # none that can be read; or spread over devices, as in no replica
            return
        device = devices.pop()
        on_device = device.type == "cuda"
        if on_device and not later.possible():
            return
        places, end = [], 0                           # of each parameter: [(byte in the room, first element, elements)]
        for part in wanted:
            places.append([])
            for first, count in _pieces(part) if part is not None else ():
                places[-1].append((end, first, count))
                end += _PIECE
        room = torch.empty(end, dtype=torch.uint8, device="cpu", pin_memory=on_device)
        with torch.no_grad():
            for part, pieces in zip(wanted, places):
                for at, first, count in pieces:
                    into = room[at:at + count * part.element_size()].view(part.dtype)
                    into.copy_(part[first:first + count], non_blocking=True)
        structure = structure_hash([entry[3]] + entries)
        sizes = [[(at, count * part.element_size()) for at, _, count in pieces] for part, pieces in zip(wanted, places)]

        def note():
            self._note(entry, when, structure, _hashes(room, sizes))
        if on_device:
            later.when_copied(device, note)
        else:
            note()

    def _readable(self, parameter):
        """The elements of a parameter in a row, without a copy; None where they cannot be compared or read."""
        torch = self.probe.torch
        if type(parameter) is not torch.nn.Parameter or parameter.device.type not in ("cuda", "cpu") or \
                parameter.numel() == 0 or any(hasattr(parameter, mark) for mark in ("ds_id", "ds_optim_param")):
            return None
        plain = parameter.detach()
        if plain.element_size() > _PIECE or str(plain.layout) != "torch.strided":
            return None
        return plain.as_strided((plain.numel(),), (1,)) if has_no_gaps(plain) else None

    def _note(self, entry, when, structure, hashes):
        note, key = self.probe.native.note, "values.%s.%s" % (entry[1], when)
        whole = short_hash(" ".join(hashes))
        note(key, "%d %s %s" % (sum(hashed != "-" for hashed in hashes), structure, whole))
        if whole != entry[2]:
            for first in range(0, len(hashes), _CHUNK):
                note("%s.%d" % (key, first), " ".join(hashes[first:first + _CHUNK]))
        entry[2] = whole


def _hashes(room, pieces_of_parameters):
    """A short hash of what was copied of each parameter, "-" of none."""
    import ctypes                                                           # torch has imported it
    content, hashes = ctypes.string_at(room.data_ptr(), room.numel()), []
    for pieces in pieces_of_parameters:
        digest = hasher()
        for at, size in pieces:
            digest.update(content[at:at + size])
        hashes.append(digest.hexdigest()[:8] if pieces else "-")
    return hashes


def _pieces(part):
    """[(first element, elements)]: the beginning, the middle and the end."""
    count = _PIECE // part.element_size()
    total = part.numel()
    if total <= 3 * count:
        return [(first, min(count, total - first)) for first in range(0, total, count)]
    return [(0, count), ((total - count) // 2, count), (total - count, count)]

