// What the NVML beside this library asks it.
#include <algorithm>

#include "simgpu/core/abi.h"
#include "simgpu/core/machine.h"

// Bytes that all processes have taken of a device of the machine.
SIMGPU_API size_t simgpu_used_bytes(int physical) { return simgpu::machine::used(physical); }

// The processes that have taken memory of it, at most `room` of them; returns how many there are.
SIMGPU_API unsigned simgpu_users(int physical, unsigned* pids, unsigned long long* bytes, unsigned room) {
  const auto users = simgpu::machine::users(physical);
  for (size_t i = 0; i < std::min<size_t>(users.size(), room); ++i) {
    pids[i] = static_cast<unsigned>(users[i].pid);
    bytes[i] = users[i].bytes;
  }
  return static_cast<unsigned>(users.size());
}
