#include "detectors/memory_trend.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace dshang::detect {
namespace {

constexpr std::size_t kWarmUp =
    3;  // first steps, or a tenth of all: lazily made state, search for algorithms
constexpr std::size_t kLeastSteps = 40;           // of a window
constexpr double kHorizon = 10;                   // windows
constexpr double kSlowest = 0.4, kFastest = 2.5;  // of a quarter against the whole
constexpr double kGivenBack = 0.5;                // of the growth
constexpr double kNoise = 0.25;                   // of the growth: scatter around the line

struct Line {
  double slope = 0, at_begin = 0, at_end = 0, scatter = 0;
};

Line fit(const MemoryPoint* from, std::size_t n) {
  double mean_x = 0, mean_y = 0;
  for (std::size_t i = 0; i < n; ++i) mean_x += static_cast<double>(from[i].step), mean_y += from[i].bytes;
  mean_x /= static_cast<double>(n), mean_y /= static_cast<double>(n);
  double xx = 0, xy = 0;
  for (std::size_t i = 0; i < n; ++i) {
    double x = static_cast<double>(from[i].step) - mean_x;
    xx += x * x, xy += x * (from[i].bytes - mean_y);
  }
  Line line;
  line.slope = xx > 0 ? xy / xx : 0;
  auto at = [&](std::size_t i) { return mean_y + line.slope * (static_cast<double>(from[i].step) - mean_x); };
  double squares = 0;
  for (std::size_t i = 0; i < n; ++i) squares += (from[i].bytes - at(i)) * (from[i].bytes - at(i));
  line.at_begin = at(0), line.at_end = at(n - 1);
  line.scatter = std::sqrt(squares / static_cast<double>(n));
  return line;
}

// One step that is larger than its neighbours (an evaluation, a longer sample) is no growth and no fall.
std::vector<MemoryPoint> without_spikes(const std::vector<MemoryPoint>& points) {
  std::vector<MemoryPoint> smooth = points;
  for (std::size_t i = 2; i + 2 < points.size(); ++i) {
    std::array<double, 5> around;
    for (std::size_t k = 0; k < around.size(); ++k) around[k] = points[i + k - 2].bytes;
    std::nth_element(around.begin(), around.begin() + 2, around.end());
    smooth[i].bytes = around[2];
  }
  // At both ends there are too few neighbours.
  if (smooth.size() > 4) {
    smooth.erase(smooth.begin(), smooth.begin() + 2);
    smooth.resize(smooth.size() - 2);
  }
  return smooth;
}

double most_given_back(const std::vector<MemoryPoint>& points) {
  double highest = 0, most = 0;
  for (const MemoryPoint& point : points) {
    highest = std::max(highest, point.bytes);
    most = std::max(most, highest - point.bytes);
  }
  return most;
}

bool is_even(const MemoryPoint* from, std::size_t n, const Line& whole) {
  std::size_t quarter = n / 4;
  for (std::size_t q = 0; q < 4; ++q) {
    double slope = fit(from + q * quarter, quarter).slope;
    if (slope < kSlowest * whole.slope || slope > kFastest * whole.slope) return false;
  }
  return whole.scatter <= kNoise * (whole.at_end - whole.at_begin);
}

}  // namespace

std::optional<MemoryTrend> steady_growth(const std::vector<MemoryPoint>& points, double limit, double least) {
  std::size_t warm_up = std::max(kWarmUp, points.size() / 10);
  if (points.size() < kLeastSteps + warm_up) return std::nullopt;
  std::vector<MemoryPoint> smooth =
      without_spikes({points.begin() + static_cast<std::ptrdiff_t>(warm_up), points.end()});
  double given_back = most_given_back(smooth);
  for (std::size_t n = smooth.size(); n + 4 >= kLeastSteps; n = n * 3 / 4) {
    const MemoryPoint* from = smooth.data() + (smooth.size() - n);
    Line line = fit(from, n);
    double growth = line.at_end - line.at_begin;
    if (line.slope <= 0 || growth < least || given_back > kGivenBack * growth || !is_even(from, n, line))
      continue;
    std::int64_t newest = points.back().step;
    double now = line.at_end + line.slope * static_cast<double>(newest - smooth.back().step);
    double left = std::max(0.0, (limit - now) / line.slope);
    double window = static_cast<double>(newest - from->step);
    if (left > kHorizon * window) continue;
    return MemoryTrend{n, line.slope, line.at_begin, now,
                       newest + static_cast<std::int64_t>(std::llround(left))};
  }
  return std::nullopt;
}

}  // namespace dshang::detect
