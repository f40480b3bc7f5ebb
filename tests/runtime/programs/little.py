"""One rank that calls CUDA and NCCL through whatever is loaded in the process."""
import ctypes
import os
import time

process = ctypes.CDLL(None)


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


process.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, UniqueId, ctypes.c_int]
process.ncclAllReduce.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
process.cudaMalloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
process.cudaFree.argtypes = [ctypes.c_void_p]
process.cudaStreamSynchronize.argtypes = [ctypes.c_void_p]
process.cudaStreamCreateWithFlags.argtypes = [ctypes.c_void_p, ctypes.c_uint]
process.cudaLaunchHostFunc.argtypes = [ctypes.c_void_p] * 3
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def malloc(size):
    """(result, address)"""
    address = ctypes.c_void_p()
    result = process.cudaMalloc(ctypes.byref(address), size)
    return result, address.value


def communicator():
    """A communicator of this process alone."""
    assert process.cudaSetDevice(0) == 0
    unique = UniqueId()
    assert process.ncclGetUniqueId(ctypes.byref(unique)) == 0
    handle = ctypes.c_void_p()
    assert process.ncclCommInitRank(ctypes.byref(handle), 1, unique, 0) == 0
    return handle


def stream():
    made = ctypes.c_void_p()
    assert process.cudaStreamCreateWithFlags(ctypes.byref(made), 1) == 0
    return made


def all_reduce(handle, on, count=1000):
    _, address = malloc(count * 4)
    assert process.ncclAllReduce(address, address, count, 7, 0, handle, on) == 0


def threads():
    """Names of the threads of this process."""
    found = []
    for task in os.listdir("/proc/self/task"):
        with open("/proc/self/task/%s/comm" % task) as comm:
            found.append(comm.read().strip())
    return found


def descriptors():
    found = {}
    for fd in os.listdir("/proc/self/fd"):
        try:
            found[int(fd)] = os.readlink("/proc/self/fd/" + fd)
        except OSError:
            pass
    return found


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def monitors():
    """Pids of the fake monitors that were told of this process, oldest first."""
    import glob
    import json
    found = []
    for path in sorted(glob.glob(os.environ["FAKE_MONITOR_DIR"] + "/events.*"), key=os.path.getctime):
        for line in open(path):
            event = json.loads(line)
            if event["what"] == "hello" and event["pid"] == os.getpid() and event["monitor"] not in found:
                found.append(event["monitor"])
    return found


def wait_for_monitor(count=1):
    wait_for(lambda: len(monitors()) >= count)
    time.sleep(0.15)  # its copies are 0.05 s apart
