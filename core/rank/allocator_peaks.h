// What the caching allocator held at most in the step that ends, as the probe read it.
//
// The probe gives both before it announces the next step; the memory ledger takes them when it closes the
// step (step_listener.h).  Threads: any.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/flight/format.h"

namespace dshang::rank {

inline std::atomic<std::uint64_t> allocator_reserved_peak{flight::kUnknownBytes};
inline std::atomic<std::uint64_t> allocator_allocated_peak{flight::kUnknownBytes};

inline void give_allocator_peaks(std::uint64_t reserved, std::uint64_t allocated) {
  allocator_reserved_peak.store(reserved, std::memory_order_relaxed);
  allocator_allocated_peak.store(allocated, std::memory_order_relaxed);
}

inline std::uint64_t take_reserved_peak() {
  return allocator_reserved_peak.exchange(flight::kUnknownBytes, std::memory_order_relaxed);
}
inline std::uint64_t take_allocated_peak() {
  return allocator_allocated_peak.exchange(flight::kUnknownBytes, std::memory_order_relaxed);
}

}  // namespace dshang::rank
