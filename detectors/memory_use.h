// What a rank's memory records say: how much of the device it used at most, for what, and in which step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "detectors/registry.h"

namespace dshang::detect {

using Bytes = std::optional<std::uint64_t>;  // absent = not known
inline Bytes known(std::uint64_t bytes) { return bytes == flight::kUnknownBytes ? Bytes{} : Bytes{bytes}; }

// Taken from the device by the process through allocation calls: what it holds at the end of the step, and at
// most in it.  What a caching allocator holds counts whole.
std::uint64_t taken(const job::MemoryStep& step);
std::uint64_t taken_peak(const job::MemoryStep& step);

// The most that was really in use: what torch had allocated, where the probe read it, else what was taken.
std::uint64_t used_peak(const job::MemoryStep& step);

// What nobody accounts for: context, NCCL, libraries that allocate by themselves, other processes.
Bytes unaccounted(const job::MemoryStep& step);

// All that the process could have: what is free and what it has taken; else the device.
Bytes within_reach(const job::MemoryStep& step);

// Whether torch's allocator works with segments that grow: by its settings, which the probe notes, else by
// what kind of memory the process mostly holds.
bool expandable_segments(const JobView& view, const job::RankView& rank);

// Of the device, from any record; 0 = not known.
std::uint64_t device_total(const JobView& view, const job::RankView& rank);

// Training steps with a whole record, oldest first, at most the newest `most` of them.
std::vector<const job::MemoryStep*> memory_steps(const job::RankView& rank, std::size_t most = SIZE_MAX);

// The newest request for device memory that failed and was not satisfied by trying again, as far as that is
// settled; null = none.
const job::AllocFailure* last_alloc_failure(const JobView& view, const job::RankView& rank);

std::uint64_t elements(const std::uint32_t (&batch)[flight::kBatchSizes]);  // 0 = no batch is known
std::string batch_text(const std::uint32_t (&batch)[flight::kBatchSizes]);  // "4 x 8192"

// The batch of middle size of these steps; null = none is known.
const job::MemoryStep* usual_batch(const std::vector<const job::MemoryStep*>& steps);

// What torch had allocated by phase, the most first: at its peak where that moved torch's own, else at the
// phase's end. "by phase, at most or at its end: backward 61 GiB, forward 55 GiB"; "" where the probe read
// nothing.
std::string phases_text(const JobView& view, const job::MemoryStep& step);

// "batch 4 x 8192, usually 4 x 2048", "" unknown
std::string batch_against_usual(const std::uint32_t (&batch)[flight::kBatchSizes],
                                const std::vector<const job::MemoryStep*>& steps);

// Evidence: the parts of the device's memory at this step's peak, and what made it.
std::vector<std::string> evidence_of_peak(const JobView& view, const job::RankView& rank,
                                          const job::MemoryStep& step);

// Pinned memory, and what was resident at the monitor's last look; "" unknown.
std::string host_memory_text(const job::RankView& rank);

}  // namespace dshang::detect
