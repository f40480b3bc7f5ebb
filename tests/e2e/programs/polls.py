"""A program without torch that asks its communicator for errors while it waits: in its second call the ranks disagree."""
import ctypes
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scenarios"))
from rankscript import run  # noqa: E402

nccl = ctypes.CDLL(None)
nccl.ncclCommGetAsyncError.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
nccl.ncclGetLastError.argtypes, nccl.ncclGetLastError.restype = [ctypes.c_void_p], ctypes.c_char_p


def main(r):
    world = r.world()
    world.all_reduce(8)
    world.all_reduce(8 + r.rank, wait=False)
    error = ctypes.c_int()
    end = time.monotonic() + 50
    while time.monotonic() < end and error.value == 0:
        assert nccl.ncclCommGetAsyncError(world.handle, ctypes.byref(error)) == 0
        time.sleep(0.1)
    sys.stdout.write(f"rank {r.rank} error {error.value}: {nccl.ncclGetLastError(world.handle).decode()}\n")     # one write
    sys.stdout.flush()
    os._exit(7 if error.value else 0)


if __name__ == "__main__":
    run(main)
