"""Access to simulated device memory, which is memory of this process."""
import ctypes

import torch

from .queued import IDLE, state_of_stream

_process = ctypes.CDLL(None)  # the simulated runtime is preloaded


def cpu_view(tensor):
    """The same memory as a CPU tensor. Waits for the current stream first."""
    storage = tensor.untyped_storage()
    if state_of_stream(tensor.device) != IDLE:      # else nothing is said to a device on which somebody may be capturing
        torch.cuda.current_stream(tensor.device).synchronize()
    if storage.nbytes() == 0:
        return torch.empty(tensor.shape, dtype=tensor.dtype)
    buffer = (ctypes.c_char * storage.nbytes()).from_address(storage.data_ptr())
    view = torch.frombuffer(buffer, dtype=torch.uint8).untyped_storage()
    return torch.empty(0, dtype=tensor.dtype).set_(view, tensor.storage_offset(), tensor.size(), tensor.stride())


def to_cpu(tensor):
    tensor = tensor.detach()
    return tensor.to("cpu") if tensor.is_contiguous() else cpu_view(tensor)


def to_device(value, device):
    # Asynchronous: a blocking copy would wait behind a collective that hangs, and the stack of the hang would show the
    # shim instead of the program's next synchronisation.
    return value.to(device, non_blocking=True)


def write(tensor, value):
    """Writes a CPU tensor's elements to a device tensor of the same shape."""
    if tensor.is_contiguous() and value.dtype == tensor.dtype:
        tensor.copy_(value.contiguous(), non_blocking=True)
        return
    view = cpu_view(tensor)
    if view.data_ptr() != value.data_ptr():
        view.copy_(value)


def zero(tensor):
    """Asynchronous, and real: tensor.zero_() is a kernel in some versions of torch, which does nothing here."""
    if tensor.numel() == 0 or not tensor.is_contiguous():
        return
    stream = torch.cuda.current_stream(tensor.device).cuda_stream
    _process.cudaMemsetAsync(ctypes.c_void_p(tensor.data_ptr()), 0,
                             ctypes.c_size_t(tensor.numel() * tensor.element_size()), ctypes.c_void_p(stream))
