// Ranges that a program marks with NVTX, as phases (interpose/nvtx/ hands them on).
//
// A thread has one stack of ranges a domain; most of them are no phase.  A range that is a phase which the
// thread is in already (the probe said it, or an enclosing range) is counted only.  DeepSpeed does not end
// its ranges where an exception passes by; such phases are left when the next `forward` begins on the thread.
//
// Threads: each function acts on the calling thread.  No lock, no allocation.  Deeper than 64 ranges nothing
// is a phase.
#pragma once

#include <cstdint>

namespace dshang::rank {

enum class RangeDomain : std::uint32_t { kDefault, kDeepSpeed };
inline constexpr unsigned kRangeDomains = 2;

}  // namespace dshang::rank

extern "C" {
// Exported for libdshang_nvtx.so alone.  `phase`: null where the range is none; other domains are ignored.
[[gnu::visibility("default")]] void dshang_range_push(std::uint32_t domain, const char* phase);
[[gnu::visibility("default")]] void dshang_range_pop(std::uint32_t domain);
}
