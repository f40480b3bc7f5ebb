// The clock of flight memory and of the journal.
#pragma once

#include <time.h>

#include <cstdint>

namespace dshang::monitor {

inline constexpr std::uint64_t kSecond = 1000000000u;
inline constexpr std::uint64_t kMillisecond = 1000000u;

inline std::uint64_t clock_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return std::uint64_t(t.tv_sec) * kSecond + std::uint64_t(t.tv_nsec);
}

inline std::uint64_t now_ns() { return clock_ns(CLOCK_MONOTONIC); }

// 0 for a moment that is yet to come.
inline std::uint64_t elapsed(std::uint64_t since, std::uint64_t now) { return now > since ? now - since : 0; }

}  // namespace dshang::monitor
