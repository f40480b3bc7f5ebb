"""The configuration as deepspeed.initialize gets it, before anything looks at it, and whether DeepSpeed refuses it."""
import json
import os
import stat
import sys

from dshang_probe.errors import without_own_frame
from dshang_probe.facts import note_memory_before_engine
from dshang_probe.long_notes import note_long

_LARGEST_FILE = 1 << 20


class Configured:
    def __init__(self, probe):
        self.probe = probe
        self.given = False        # whether it was noted what initialize got

    def watch(self, module):
        """deepspeed.runtime.config"""
        self.probe.patches.replace(module.DeepSpeedConfig, "__init__", self._around_init)

    def _around_init(self, original):
        guarded = self.probe.patches.guarded

        def init(config, *args, **kwargs):
            # zero.Init makes one too, from a file in which a trainer has not yet replaced "auto".
            final = sys._getframe(1).f_code.co_name == "initialize"
            if final:
                guarded("facts", self._note, args, kwargs)
            try:
                original(config, *args, **kwargs)
            except Exception as error:
                if final:
                    self.refused(error)
                without_own_frame(error)
                raise
            if not final and not self.given:              # later ones are of further models
                guarded("facts", note_memory_before_engine, self.probe.native, config)
        return init

    def _note(self, args, kwargs):
        native = self.probe.native
        text = _text_of(kwargs.get("config", args[0] if args else None))
        if text:
            self.given = True
            note_long(native, "deepspeed.given", text)
        others = [name for position, name in ((1, "mpu"), (2, "mesh_device"))
                  if kwargs.get(name, args[position] if len(args) > position else None) is not None]
        if others:
            native.note("deepspeed.divided", " ".join(others))

    def refused(self, error, config=None):
        """DeepSpeed did not take the configuration, or did not build its engine, which had read this one."""
        self.probe.patches.guarded("facts", self._note_refusal, error, config)       # its text is the program's own code

    def _note_refusal(self, error, config):
        if not self.given and isinstance(config, dict):           # the probe came after DeepSpeed had read it
            note_long(self.probe.native, "deepspeed.given", _text_of(config))
        text = "%s: %s" % (type(error).__name__, " ".join(str(error).split()))
        self.probe.native.note("deepspeed.refused", text[:600])


def _text_of(config):
    """A configuration as text: a dictionary as JSON, a file as it is written."""
    if isinstance(config, dict):
        return json.dumps(_finite(config), default=lambda value: type(value).__name__)
    if isinstance(config, str) and len(config) < 4096:
        try:
            if not stat.S_ISREG(os.stat(config).st_mode):
                return None                   # what is read from a pipe is gone for the program
            with open(config, encoding="utf-8") as file:
                return file.read(_LARGEST_FILE).strip()
        except (OSError, ValueError):
            return None                       # no file: base64 of one
    return None


def _finite(value):
    """JSON has no infinity, which Accelerate writes for steps that never come."""
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return 1e300 if value > 0 else -1e300
    if isinstance(value, dict):
        return {str(key): _finite(part) for key, part in dict.items(value)}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    return value
