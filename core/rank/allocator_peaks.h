// What is known of the memory of the step that goes on: peaks of the caching allocator, by phase too, and the sizes of
// the batch, as the probe read them.
//
// The probe gives the allocator's peaks before it announces the next step; the memory ledger takes all of it when it
// closes the step (step_listener.h).  The batch is given after the step was announced.  Threads: any; two that give
// at the same moment may lose one of both.
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

// The allocator's newest state, for a failure in the middle of a step.
inline std::atomic<std::uint64_t> allocator_reserved_now{flight::kUnknownBytes};
inline std::atomic<std::uint64_t> allocator_allocated_now{flight::kUnknownBytes};

struct PhasePeak {
  std::atomic<std::uint32_t> phase{0};  // string, 0 = unused
  std::atomic<std::uint64_t> allocated{0};
};
inline PhasePeak phase_peaks[flight::kMemoryPhases];

// At the end of a phase (a string of the flight memory): the most that was allocated in it, and what the allocator
// holds now.
inline void give_phase_peak(std::uint32_t phase, std::uint64_t peak, std::uint64_t reserved_now,
                            std::uint64_t allocated_now) {
  allocator_reserved_now.store(reserved_now, std::memory_order_relaxed);
  allocator_allocated_now.store(allocated_now, std::memory_order_relaxed);
  for (PhasePeak& one : phase_peaks) {
    std::uint32_t known = one.phase.load(std::memory_order_relaxed);
    if (known != 0 && known != phase) continue;
    if (known == 0) one.phase.store(phase, std::memory_order_relaxed);
    if (peak > one.allocated.load(std::memory_order_relaxed))
      one.allocated.store(peak, std::memory_order_relaxed);
    return;
  }
}

inline void take_phase_peaks(flight::MemoryPhase (&into)[flight::kMemoryPhases]) {
  for (unsigned i = 0; i < flight::kMemoryPhases; ++i) {
    into[i].phase = phase_peaks[i].phase.exchange(0, std::memory_order_relaxed);
    into[i].allocated = phase_peaks[i].allocated.exchange(0, std::memory_order_relaxed);
  }
}

inline std::atomic<std::uint32_t> batch_sizes[flight::kBatchSizes];
inline std::atomic<std::uint64_t> batch_elements{0};

// The sizes of the largest tensor of a micro-batch; that of the largest one of the step is kept.
inline void give_batch(const std::uint32_t (&sizes)[flight::kBatchSizes]) {
  std::uint64_t elements = 1;
  for (std::uint32_t size : sizes) elements *= size ? size : 1;
  if (sizes[0] == 0 || elements <= batch_elements.load(std::memory_order_relaxed)) return;
  batch_elements.store(elements, std::memory_order_relaxed);
  for (unsigned i = 0; i < flight::kBatchSizes; ++i)
    batch_sizes[i].store(sizes[i], std::memory_order_relaxed);
}

inline void look_at_batch(std::uint32_t (&into)[flight::kBatchSizes]) {
  for (unsigned i = 0; i < flight::kBatchSizes; ++i) into[i] = batch_sizes[i].load(std::memory_order_relaxed);
}

inline void take_batch(std::uint32_t (&into)[flight::kBatchSizes]) {
  batch_elements.store(0, std::memory_order_relaxed);
  for (unsigned i = 0; i < flight::kBatchSizes; ++i)
    into[i] = batch_sizes[i].exchange(0, std::memory_order_relaxed);
}

// Strings of one flight memory mean nothing in the next: in a forked child.
inline void forget_allocator() {
  flight::MemoryPhase phases[flight::kMemoryPhases];
  std::uint32_t sizes[flight::kBatchSizes];
  take_phase_peaks(phases);
  take_batch(sizes);
  take_reserved_peak();
  take_allocated_peak();
  allocator_reserved_now.store(flight::kUnknownBytes, std::memory_order_relaxed);
  allocator_allocated_now.store(flight::kUnknownBytes, std::memory_order_relaxed);
}

}  // namespace dshang::rank
