"""How this program was started, and what Hugging Face's trainer was told: for a bug report (dshang issue)."""
import json
import os
import re
import sys

from dshang_probe.errors import without_own_frame
from dshang_probe.long_notes import note_long

_LONGEST = 1000
_LAUNCHERS = ("deepspeed", "deepspeed.pt", "ds", "torchrun", "accelerate", "mpirun", "mpiexec", "srun", "horovodrun")
_MODULES = ("torch.distributed.run", "torch.distributed.launch", "deepspeed.launcher.runner", "accelerate.commands.launch")
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+\Z")
_SECRET = re.compile(r"(?i)^(-{0,2}[\w.-]*(?:password|passwd|secret|token(?![a-z])|api[-_]?key|credential)[\w.-]*)(=.*)?$")


def note_command(native):
    words = list(getattr(sys, "orig_argv", ()) or [sys.executable] + sys.argv)
    native.note("program.command", _text_of(words))
    launcher = _launcher()
    if launcher:
        native.note("program.launcher", _text_of(launcher))


def _text_of(words):
    """As a shell would read it, without values whose names are those of secrets."""
    shown, hide = [], False
    for word in words:
        match = _SECRET.match(word)
        if hide and not word.startswith("-"):
            shown.append("...")
            hide = False
        elif match and match.group(2):
            shown.append(match.group(1) + "=...")
        else:
            shown.append(word)
            hide = bool(match and word.startswith("-"))
    text = " ".join(word if _PLAIN.match(word) else "'" + word.replace("'", "'\\''") + "'" for word in shown)
    return text if len(text) <= _LONGEST else text[:_LONGEST - 4] + " ..."


def _launcher():
    """The words of the outermost launcher among this process's parents; None where there is none."""
    found, pid = None, os.getppid()
    for _ in range(8):
        if pid <= 1:
            break
        try:
            with open("/proc/%d/cmdline" % pid, "rb") as file:
                words = [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]
            with open("/proc/%d/stat" % pid) as file:
                pid = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
        if any(os.path.basename(word) in _LAUNCHERS or word in _MODULES for word in words[:4]):
            found = words
    return found


class Arguments:
    """Hugging Face's TrainingArguments."""

    def __init__(self, probe):
        self.probe = probe
        self.noted = False

    def watch(self, module):
        """transformers.trainer"""
        self.probe.patches.replace(module.Trainer, "__init__", self._around_init, optional=True)

    def _around_init(self, original):
        guarded = self.probe.patches.guarded

        def init(trainer, *args, **kwargs):
            try:
                original(trainer, *args, **kwargs)
            except BaseException as error:
                without_own_frame(error)
                raise
            if not self.noted:
                self.noted = True
                guarded("TrainingArguments", self._note, getattr(trainer, "args", None))
        return init

    def _note(self, arguments):
        native = self.probe.native
        native.note("version.transformers", str(getattr(sys.modules.get("transformers"), "__version__", "unknown")))
        dataclasses = sys.modules.get("dataclasses")             # transformers has imported it
        if dataclasses is not None and dataclasses.is_dataclass(arguments):
            note_long(native, "hf.arguments", json.dumps(_changed(arguments, dataclasses), sort_keys=True, default=str))


def _changed(arguments, dataclasses):
    """The fields whose values are not their defaults; none whose names are those of secrets."""
    changed = {}
    for field in dataclasses.fields(arguments):
        value = getattr(arguments, field.name, None)
        default = field.default
        if field.default_factory in (dict, list, set, tuple):      # no code of the program's own
            default = field.default_factory()
        if not field.init or value == default or _SECRET.match(field.name):
            continue
        changed[field.name] = value if isinstance(value, (bool, int, float, str, list, dict, type(None))) else str(value)
    return changed
