// Whether a rank went on behind something that failed.
#pragma once

#include <cstdint>

#include "detectors/registry.h"

namespace dshang::detect {

// When a later step or a later call that is not outstanding shows that the rank went on, or it ended
// normally; 0 = nothing shows it.
std::uint64_t went_on_at(const job::RankView& rank, std::uint64_t failed_ns);

// Nobody caught an exception of its main thread since then: its process is about to end.
bool uncaught_since(const JobView& view, const job::RankView& rank, std::uint64_t failed_ns);

}  // namespace dshang::detect
