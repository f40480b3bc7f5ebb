"""CUDA and NCCL as a program sees them: those loaded in the process, or those of one library.  Python 3.8 and later."""
import ctypes
import os
import sys
import time

POINTER, SIZE, INT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
REACH = os.environ["REACH"]


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


class Config(ctypes.Structure):
    """The beginning of ncclConfig_t, and room for the rest."""
    _fields_ = [("size", SIZE), ("magic", ctypes.c_uint), ("version", ctypes.c_uint), ("blocking", INT), ("rest", INT * 32)]

    def __init__(self, blocking):
        super().__init__(ctypes.sizeof(Config), 0xcafebeef, 23007, blocking, (INT * 32)(*[-2147483648] * 32))


SIGNATURES = {
    "cudaSetDevice": [INT], "cudaMalloc": [POINTER, SIZE], "cudaFree": [POINTER], "cudaMemGetInfo": [POINTER, POINTER],
    "cudaStreamCreateWithFlags": [POINTER, ctypes.c_uint], "cudaStreamSynchronize": [POINTER],
    "cudaLaunchHostFunc": [POINTER] * 3,
    "cudaStreamBeginCapture": [POINTER, INT], "cudaStreamEndCapture": [POINTER, POINTER],
    "cudaGraphInstantiate": [POINTER, POINTER, ctypes.c_ulonglong], "cudaGraphLaunch": [POINTER, POINTER],
    "ncclGetUniqueId": [POINTER], "ncclCommInitRank": [POINTER, INT, UniqueId, INT],
    "ncclCommInitRankConfig": [POINTER, INT, UniqueId, INT, POINTER], "ncclCommInitAll": [POINTER, INT, POINTER],
    "ncclAllReduce": [POINTER, POINTER, SIZE, INT, INT, POINTER, POINTER], "ncclCommDestroy": [POINTER],
    "ncclCommGetAsyncError": [POINTER, POINTER], "ncclGroupStart": [], "ncclGroupEnd": [],
}


def check(result, allowed=(0,)):
    assert result in allowed, result
    return result


class Gpu:
    def __init__(self, library=None, mode=ctypes.DEFAULT_MODE):
        self.so = ctypes.CDLL(library, mode)
        for name, arguments in SIGNATURES.items():
            function = getattr(self.so, name, None)
            if function is not None:
                function.argtypes = arguments
            setattr(self, name, function)

    def stream(self):
        made = POINTER()
        check(self.cudaStreamCreateWithFlags(ctypes.byref(made), 1))
        return made

    def malloc(self, size):
        address = POINTER()
        check(self.cudaMalloc(ctypes.byref(address), size))
        return address

    def free_memory(self):
        free, total = SIZE(), SIZE()
        check(self.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)))
        return free.value

    def unique_id(self):
        unique = UniqueId()
        check(self.ncclGetUniqueId(ctypes.byref(unique)))
        return unique

    def communicator(self, size=1, rank=0, unique=None, device=0):
        """By default one of this process alone."""
        check(self.cudaSetDevice(device))
        handle = POINTER()
        check(self.ncclCommInitRank(ctypes.byref(handle), size, unique or self.unique_id(), rank))
        return handle

    def meet(self, name="world"):
        """The communicator of all ranks, by RANK and WORLD_SIZE; its id travels through a file."""
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        path = os.path.join(os.environ["TMPDIR"], "id." + name)
        if rank == 0:
            unique = self.unique_id()
            with open(path + ".new", "wb") as file:
                file.write(bytes(unique))
            os.rename(path + ".new", path)
        else:
            wait_for(lambda: os.path.exists(path))
            unique = UniqueId.from_buffer_copy(open(path, "rb").read())
        return self.communicator(size, rank, unique, device=int(os.environ.get("LOCAL_RANK", 0)))

    def all_reduce(self, comm, stream, count=1000):
        address = self.malloc(count * 4)
        check(self.ncclAllReduce(address, address, count, 7, 0, comm, stream))

    def sync(self, stream):
        check(self.cudaStreamSynchronize(stream))


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def reach(name):
    """Path of a library of the tests."""
    return os.path.join(REACH, name)
