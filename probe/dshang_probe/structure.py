"""The parameters that a framework is about to take over: names, shapes and types, so that ranks that bring another
model are found, and what differs has a name.  Their values are looked at later (values.py)."""
from dshang_probe.digest import short_hash

_MOST_CHUNKS = 64             # of the first model of a process; facts are few
_MOST_CHUNKS_LATER = 8
_LEAST = 16                   # parameters of a chunk
_MOST_TEXT = 1400


def replicated(model):
    """(entries, parameters) that every rank should have alike; shards of ZeRO-3 stand for the whole.

    Experts are left out: which ones a rank has is its own business."""
    entries, parameters = [], []
    ignored = getattr(model, "_ddp_params_and_buffers_to_ignore", ())
    for name, parameter in model.named_parameters():
        if getattr(parameter, "allreduce", True) and name not in ignored:
            entries.append(_entry(name, parameter))
            parameters.append(parameter)
    return entries, parameters


def note_parameters(native, model, key):
    """Notes <key> = "<count> <hash>", and <key>.<position> = "<hash> <entry> ..." of chunks."""
    entries, _ = replicated(model)
    if not entries:
        return
    native.note(key, "%d %s" % (len(entries), structure_hash(entries)))
    chunks = _MOST_CHUNKS if key.endswith(".1") else _MOST_CHUNKS_LATER
    length = max(_LEAST, -(-len(entries) // chunks))
    for position in range(0, len(entries), length):
        chunk = entries[position:position + length]
        text = " ".join([structure_hash(chunk)] + chunk)
        if len(text) > _MOST_TEXT:
            text = text[:_MOST_TEXT].rsplit(" ", 1)[0] + " ..."
        native.note("%s.%d" % (key, position), text)


def structure_hash(entries):
    return short_hash("\n".join(entries))


def _entry(name, parameter):
    """layers.0.fc.weight[64,32]:bfloat16, with :frozen behind it where it gets no gradient."""
    shape = getattr(parameter, "ds_shape", None)      # a shard of ZeRO-3 has the shape of the whole here
    if shape is None:
        shape = parameter.shape
    text = "%s[%s]:%s" % (name.replace(" ", "_"), ",".join(str(size) for size in shape),
                          str(parameter.dtype).rsplit(".", 1)[-1])
    return text if parameter.requires_grad else text + ":frozen"
