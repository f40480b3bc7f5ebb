// Sums over the kinds of memory that the wrappers tell apart.
#pragma once

#include <cstdint>

#include "core/flight/format.h"

namespace dshang::job {

// Device memory by the calls that were seen.  Of peaks: those of different kinds need not fall together, so
// that it is at most this.
inline std::uint64_t on_device(const std::uint64_t (&bytes)[flight::kMemoryKinds]) {
  using flight::MemoryKind;
  std::uint64_t sum = 0;
  for (MemoryKind kind :
       {MemoryKind::kDevice, MemoryKind::kManaged, MemoryKind::kPool, MemoryKind::kVirtual}) {
    sum += bytes[static_cast<unsigned>(kind)];
  }
  return sum;
}

}  // namespace dshang::job
