"""Facts of this rank that must agree across ranks."""
import json


def note_torch(native, torch):
    native.note("version.torch", str(torch.__version__))
    native.note("version.cuda", str(getattr(torch.version, "cuda", None)))


def note_deepspeed(native, deepspeed):
    native.note("version.deepspeed", str(getattr(deepspeed, "__version__", "unknown")))


def note_engine(native, engine):
    """Stage and configuration of an engine."""
    native.note("deepspeed.stage", str(engine.zero_optimization_stage()))
    native.note("deepspeed.accumulation", str(engine.gradient_accumulation_steps()))
    config = getattr(getattr(engine, "_config", None), "_param_dict", None)
    if config is None:
        return
    text = json.dumps(config, sort_keys=True, default=str)
    if len(text) > 3500:
        checksum = 0
        for byte in text.encode():
            checksum = (checksum * 1099511628211 ^ byte) & 0xffffffffffffffff
        text = "hash:%016x %s" % (checksum, text[:3000])
    native.note("deepspeed.config", text)
