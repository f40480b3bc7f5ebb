// Copies and fills as operations of a stream, for the runtime and the driver.
#pragma once

#include <cstddef>

#include "simgpu/core/abi.h"
#include "simgpu/core/stream.h"

namespace simgpu {

// cudaMemcpyKind.
enum CopyKind : int {
  kHostToHost = 0,
  kHostToDevice = 1,
  kDeviceToHost = 2,
  kDeviceToDevice = 3,
  kAnyToAny = 4
};

// Queues a copy. Pageable memory has the rules of hardware: as a source it may be reused when the call
// returns, as a destination it is filled then. kInvalidValue for a range that leaves its allocation, and for
// an address that should be a device's and is nobody's.
Error queue_copy(void* to, const void* from, size_t bytes, int kind, void* stream);

Error queue_copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                      size_t height, int kind, void* stream);

Error queue_fill(void* address, int value, size_t bytes, void* stream);

}  // namespace simgpu
