// Whether a series of peaks grows steadily, and when it will reach a limit.
//
// Steady means: over a window that reaches back from the newest step, each quarter grows about as fast as the
// whole, and nothing like the growth was ever given back before or within it.  So a warm-up and a plateau
// (the last quarters are flat), a single larger step, and a saw-tooth (it was given back) are not; the first
// tooth of a saw cannot be told from a leak, and is one only when it would fill the device within ten times
// the window.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace dshang::detect {

struct MemoryPoint {
  std::int64_t step;
  double bytes;
};

struct MemoryTrend {
  std::size_t steps = 0;  // looked at, newest ones
  double bytes_per_step = 0;
  double from = 0, to = 0;   // bytes, of the fitted line over the window
  std::int64_t full_at = 0;  // step in which the line reaches the limit
};

// `points` by step, oldest first.  Nothing where growth is not steady, is less than `least` bytes over the
// window, or where the limit is farther than ten times the window.
std::optional<MemoryTrend> steady_growth(const std::vector<MemoryPoint>& points, double limit, double least);

}  // namespace dshang::detect
