"""Facts of this rank that are compared across ranks (detectors/facts_differ.cpp and others)."""
import json
import os
import sys

from dshang_probe.digest import short_hash
from dshang_probe.long_notes import note_long

# Where things lie may differ from node to node.
_PLACES = ("path", "dir", "folder", "file")


def note_torch(native, torch):
    native.note("version.torch", str(torch.__version__))
    native.note("version.cuda", str(getattr(torch.version, "cuda", None)))
    version = getattr(torch._C, "_nccl_version", None)
    if version is not None:
        number = version()            # packed, or a tuple: host code, no device
        if isinstance(number, int):
            number = (number >> 32, number >> 16 & 0xffff, number & 0xffff)
        native.note("version.nccl_of_torch", ".".join(str(part) for part in number))


def note_seed(native, torch):
    native.note("seed.torch", str(torch.initial_seed()))


def note_deepspeed(native, deepspeed):
    native.note("version.deepspeed", str(getattr(deepspeed, "__version__", "unknown")))


def ending_of(number):
    """What stands behind the keys of the `number`-th engine of this process."""
    return "" if number == 1 else ".%d" % number


def note_engine(native, engine, number):
    """Stage and configuration of the `number`-th engine of this process."""
    ending = ending_of(number)
    native.note("deepspeed.stage" + ending, str(engine.zero_optimization_stage()))
    native.note("deepspeed.accumulation" + ending, str(engine.gradient_accumulation_steps()))
    native.note("deepspeed.direct_backward" + ending, direct_backward(engine))
    config = getattr(getattr(engine, "_config", None), "_param_dict", None)
    if config is None:
        return
    plain = json.dumps(without_places(config), sort_keys=True, default=_kind)
    native.note("deepspeed.config.hash" + ending, short_hash(plain))
    note_long(native, "deepspeed.config" + ending, json.dumps(config, sort_keys=True, default=_kind))


def note_muon(native, engine, number):
    """Embeddings and the output layer, where Muon updates them: it is made for the matrices between them."""
    optimizer = getattr(engine, "basic_optimizer", None) or getattr(engine, "optimizer", None)
    if not any(group.get("use_muon") for group in getattr(optimizer, "param_groups", ())):
        return
    matrices = [(name, module) for name, module in engine.module.named_modules()
                if getattr(getattr(module, "weight", None), "use_muon", None) is True]
    tables = [name for name, module in matrices if isinstance(getattr(module, "num_embeddings", None), int)]
    last = [name for name, module in matrices if name not in tables][-1:]
    found = ["%s.weight" % name for name in tables + [name for name in last if _is_output(engine.module, name)]]
    if found:
        native.note("muon.outer" + ending_of(number), " ".join(found)[:1000])


def _is_output(model, name):
    """Whether this is the last module of the model that has a matrix."""
    with_matrix = [other for other, module in model.named_modules()
                   if len(getattr(getattr(module, "weight", None), "ds_shape",
                                  getattr(getattr(module, "weight", None), "shape", ()))) == 2]
    return with_matrix[-1:] == [name]


_sized = []                   # the first model of the process


def note_size(native, model):
    """How large the first model of this process is: "<parameters> <of them trained> <bytes>", on all ranks together."""
    if _sized:
        return
    count = trained = size = 0
    for _, parameter in model.named_parameters():
        number = getattr(parameter, "ds_numel", None)         # a shard of ZeRO-3 counts as the whole here
        if number is None:
            number = parameter.numel()
        count += number
        size += number * parameter.element_size()
        if parameter.requires_grad:
            trained += number
    if count:
        _sized.append(True)
        native.note("model.size", "%d %d %d" % (count, trained, size))


def note_memory_settings(native, engine, number):
    _note_memory(native, getattr(engine, "_config", None), engine.zero_optimization_stage(),
                 engine.train_micro_batch_size_per_gpu(), number)


def note_memory_before_engine(native, config):
    """The same of the DeepSpeedConfig of zero.Init, which takes memory of its own before there is an engine."""
    _note_memory(native, config, getattr(config, "zero_optimization_stage", None), None, 1)


def _note_memory(native, configuration, stage, micro_batch, number):
    """What of a DeepSpeed configuration decides over memory, as "key=value" (its text may be too long to be noted)."""
    config = getattr(configuration, "_param_dict", None)
    if not isinstance(config, dict):
        return
    zero = config.get("zero_optimization") or {}
    texts = []

    def add(key, value):
        if value not in (None, "", {}):
            texts.append("%s=%s" % (key, str(value).replace(" ", "_")))
    add("stage", stage)
    add("micro_batch", micro_batch)
    for kind in ("bf16", "fp16"):
        if (config.get(kind) or {}).get("enabled") is True:
            add("dtype", kind)
    for part in ("offload_optimizer", "offload_param"):
        block = zero.get(part) or {}
        add(part, block.get("device"))
        add(part + ".max_in_cpu", block.get("max_in_cpu"))
        if block.get("device") == "nvme":
            add(part + ".disk", disk_of(block.get("nvme_path")))
    add("gather_16bit", zero.get("stage3_gather_16bit_weights_on_model_save"))
    add("checkpointing_block", "activation_checkpointing" in config)
    native.note("deepspeed.memory" + ending_of(number), " ".join(texts))


def disk_of(path):
    """Which kind of device a path lies on: "nvme0n1", "sda,rotating", "overlay"; "" where it cannot be told."""
    path = os.path.abspath(str(path))
    while not os.path.exists(path) and path != "/":
        path = os.path.dirname(path)
    device = os.stat(path).st_dev
    place = "/sys/dev/block/%d:%d" % (os.major(device), os.minor(device))
    if not os.path.exists(place):
        return "no_disk_of_this_machine"                      # memory, a network, a container's layers
    names = os.path.realpath(place).split("/block/")[-1].split("/")
    flag = "/sys/block/%s/queue/rotational" % names[0]
    try:
        with open(flag) as file:
            rotating = file.read().strip() == "1"
    except OSError:
        rotating = False
    return names[0] + (",rotating" if rotating else "")


def direct_backward(engine):
    """What this engine does when PyTorch's backward() runs in place of its own: newer ones know (0.18.3 on)."""
    supported = getattr(engine, "_support_torch_style_backward", None)
    return "unnoticed" if supported is None else "supported" if supported else "refused"


def without_places(value):
    """A configuration without paths and folders."""
    if isinstance(value, dict):
        return {str(key): without_places(part) for key, part in value.items()
                if not (isinstance(part, str) and str(key).lower().endswith(_PLACES))}
    if isinstance(value, (list, tuple)):
        return [without_places(part) for part in value]
    return value


def _kind(value):
    """What JSON does not know stands as its type: its text may hold an address."""
    return type(value).__name__


def note_data_parallel(native, group, number=1):
    """The global ranks that share a model and differ in their data, where the framework says so."""
    ranks = members_of(group)
    if ranks:
        native.note("data_parallel.ranks" + ending_of(number), ranks)


def members_of(group):
    """The global ranks of a process group, sorted: "0 1 2"; "" where torch does not tell."""
    members = getattr(sys.modules.get("torch.distributed"), "get_process_group_ranks", None)
    if members is None or group is None:
        return ""
    return " ".join(str(rank) for rank in sorted(members(group)))
