"""Settings, from the environment."""
import os

MODES = ("int", "off", "small")

MODE = os.environ.get("SIMGPU_NUM") or "int"
if MODE not in MODES:
    raise ValueError(f"SIMGPU_NUM={MODE} is not one of {', '.join(MODES)}")

# Tensors of more elements are not evaluated: a CPU is slow, and a dry run of a large model is about its calls.
LARGEST = int(os.environ.get("SIMGPU_SMALL") or 65536)

# Integer tensors are the control plane (attention masks, position ids, packing): they have to be right at real sizes.
LARGEST_INTEGER = max(LARGEST, 1 << 24)

# `int` mode sets float results of at most so many elements to 0; larger ones keep what the memory held before. What
# decides something (a norm, a loss, a flag) is small.
LARGEST_ZEROED = 4096

VERBOSE = int(os.environ.get("SIMGPU_LOG") or 0) >= 1
