"""One rank that notes what DeepSpeed and Hugging Face would, and fails; no torch."""
import ctypes
import json
import os
import pathlib
import sys
import time
import types

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "probe"))
from dshang_probe.long_notes import note_long  # noqa: E402

native = ctypes.CDLL(None)


def note(key, value):
    native.dshang_note(key.encode(), value.encode())


assert native.cudaSetDevice(0) == 0
note("version.deepspeed", "0.19.8")
note("version.torch", "2.14.1")
note("version.transformers", "5.24.0")
note("deepspeed.config", json.dumps({"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 3},
                                     "comet": {"enabled": True, "api_key": os.environ["PLANTED"]}}))
# In two pieces, and the end of the first divides the secret.
head, tail = '{"learning_rate": 3e-05, "run_name": "', '", "hub_token": "'
filling = "x" * (3500 - 5 - len(head) - len(tail))
note_long(types.SimpleNamespace(note=note), "hf.arguments", head + filling + tail + os.environ["PLANTED"] + 'x"}')
native.dshang_step(ctypes.c_int64(7))
until = time.monotonic() + 20
while not list(pathlib.Path(os.environ["DSHANG_DIR"]).glob("flight/spool.*")) and time.monotonic() < until:
    time.sleep(0.02)                       # the monitor has begun to watch
raise RuntimeError(f"the server refused {os.environ['PLANTED']}")
