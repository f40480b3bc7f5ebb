// What the NVML beside this library asks it.
#include "simgpu/core/context.h"
#include "simgpu/core/ledger.h"

// Bytes that this process has taken of a device of the machine.
SIMGPU_API size_t simgpu_used_bytes(int physical) {
  using namespace simgpu;
  for (int ordinal = 0; ordinal < device_count(); ++ordinal) {
    if (physical_device(ordinal) != physical) continue;
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    memory_info(ordinal, &free_bytes, &total_bytes);
    return total_bytes - free_bytes;
  }
  return 0;
}
