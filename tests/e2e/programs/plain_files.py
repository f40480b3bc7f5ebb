"""Runs a program with plain files in place of DeepSpeed's compiled async_io: `plain_files.py PROGRAM ARGUMENT...`."""
import os
import runpy
import sys
import types

import torch
from deepspeed.ops.op_builder import AsyncIOBuilder


class Handle:
    """Reads and writes at once; what was begun is counted until somebody waits for it, as async_io does."""

    def __init__(self, **settings):
        self.begun, self.locked = 0, []

    def new_cpu_locked_tensor(self, count, like):
        tensor = torch.empty(int(count), dtype=like.dtype)
        self.locked.append(tensor)
        return tensor

    def free_cpu_locked_tensor(self, tensor):
        self.locked = [one for one in self.locked if one.data_ptr() != tensor.data_ptr()]

    def is_pinned(self, tensor):
        return any(one.data_ptr() <= tensor.data_ptr() < one.data_ptr() + one.numel() * one.element_size()
                   for one in self.locked)

    def async_pwrite(self, tensor, path, offset):
        with open(path, "r+b" if os.path.exists(path) else "wb") as file:
            file.seek(offset)
            file.write(memoryview(tensor.detach().view(torch.uint8).numpy()))
        self.begun += 1
        return 0

    def async_pread(self, tensor, path, offset):
        with open(path, "rb") as file:
            file.seek(offset)
            file.readinto(memoryview(tensor.detach().view(torch.uint8).numpy()))
        self.begun += 1
        return 0

    def wait(self):
        begun, self.begun = self.begun, 0
        return begun


AsyncIOBuilder.load = lambda builder, verbose=True: types.SimpleNamespace(aio_handle=Handle)
launchers = [argument for argument in sys.argv[1:] if argument.startswith("--local_rank")]
own = [argument for argument in sys.argv[1:] if argument not in launchers]
sys.argv = own + launchers
runpy.run_path(own[0], run_name="__main__")
