"""The parameters that a framework is about to take over: names, shapes and types, so that ranks that bring another
model are found, and what differs has a name.

Values are not read: they lie on the device, and reading them would wait for it."""
from dshang_probe.digest import short_hash

_MOST_CHUNKS = 64             # of the first model of a process; facts are few
_MOST_CHUNKS_LATER = 8
_LEAST = 16                   # parameters of a chunk
_MOST_TEXT = 1400


def note_parameters(native, model, number):
    """Notes `parameters.<number>` = "<count> <hash>", and `parameters.<number>.<first>` = "<hash> <entry> ..." of chunks.

    Experts are left out: which ones a rank has is its own business."""
    entries = []
    for name, parameter in model.named_parameters():
        if getattr(parameter, "allreduce", True):
            entries.append(_entry(name, parameter))
    if not entries:
        return
    key = "parameters.%d" % number
    native.note(key, "%d %s" % (len(entries), _hash(entries)))
    chunks = _MOST_CHUNKS if number == 1 else _MOST_CHUNKS_LATER
    length = max(_LEAST, -(-len(entries) // chunks))
    for first in range(0, len(entries), length):
        chunk = entries[first:first + length]
        text = " ".join([_hash(chunk)] + chunk)
        if len(text) > _MOST_TEXT:
            text = text[:_MOST_TEXT].rsplit(" ", 1)[0] + " ..."
        native.note("%s.%d" % (key, first), text)


def _hash(entries):
    return short_hash("\n".join(entries))


def _entry(name, parameter):
    """layers.0.fc.weight[64,32]:bfloat16, with :frozen behind it where it gets no gradient."""
    shape = getattr(parameter, "ds_shape", None)      # a shard of ZeRO-3 has the shape of the whole here
    if shape is None:
        shape = parameter.shape
    text = "%s[%s]:%s" % (name.replace(" ", "_"), ",".join(str(size) for size in shape),
                          str(parameter.dtype).rsplit(".", 1)[-1])
    return text if parameter.requires_grad else text + ":frozen"
