// Allocation of device and pinned host memory, for the runtime and the driver.
#pragma once

#include <cstddef>

#include "simgpu/core/abi.h"
#include "simgpu/core/ledger.h"

namespace simgpu {

// On the current device, counted against it in whole pages of 4 KiB. Zero bytes give nullptr. Takes
// SIMGPU_ALLOC_US. kOutOfMemory if the device has not so much left.
Error allocate_device(size_t bytes, MemoryKind kind, void** address);

// Waits until everything queued on the memory's device is done, as cudaFree does, and gives it back.
// kInvalidValue if no device allocation begins there. nullptr is nothing to free.
Error free_device(void* address);

Error allocate_host(size_t bytes, void** address);
Error free_host(void* address);

// Pool memory. Freed when the stream gets there; the host does not wait.
Error allocate_from_pool(size_t bytes, void* stream, void** address);
Error free_on_stream(void* address, void* stream);

}  // namespace simgpu
