#include "detectors/memory_time.h"

#include <algorithm>
#include <cstdio>

namespace dshang::detect {
namespace {

using job::MemoryStep;

constexpr std::size_t kTold = 8;  // steps, the newest

// How long the step of record `n` was: a record is written when the next step begins.
double length_of(const job::Window<MemoryStep>& records, std::uint64_t n) {
  const MemoryStep& step = records.at(n);
  if (n == records.first() || step.step == job::kNoStep) return 0;
  const MemoryStep& before = records.at(n - 1);
  bool follows = before.time_ns != 0 && before.step == step.step - 1 && before.time_ns < step.time_ns;
  return follows ? static_cast<double>(step.time_ns - before.time_ns) / 1e9 : 0;
}

}  // namespace

std::vector<MemoryTime> memory_time(const job::RankView& rank, const std::vector<const MemoryStep*>& steps) {
  const auto& records = rank.records().memory_steps;
  std::vector<MemoryTime> times;
  for (std::uint64_t n = records.first(); n < records.end(); ++n) {
    const MemoryStep& step = records.at(n);
    if (std::find(steps.begin(), steps.end(), &step) == steps.end()) continue;
    times.push_back({step.step, static_cast<double>(step.call_ns) / 1e9, static_cast<double>(step.retry_ns) / 1e9,
                     length_of(records, n)});
  }
  return times;
}

MemoryTimes sum_of(const std::vector<MemoryTime>& times) {
  MemoryTimes sum;
  for (const MemoryTime& time : times) {
    ++sum.steps;
    sum.seconds += time.seconds;
    sum.retry_seconds += time.retry_seconds;
    if (time.whole <= 0) continue;
    ++sum.lengths;
    sum.whole += time.whole;
    sum.of_known += time.seconds;
  }
  return sum;
}

std::string short_time(double seconds) {
  char text[32];
  if (seconds < 0.01) {
    std::snprintf(text, sizeof text, "%.2g ms", seconds * 1e3);
  } else {
    std::snprintf(text, sizeof text, seconds < 10 ? "%.2f s" : "%.1f s", seconds);
  }
  return text;
}

std::string time_a_step(const MemoryTimes& sum, const std::string& unit) {
  if (sum.seconds <= 0) return "";
  if (sum.lengths == 0) return short_time(sum.seconds / static_cast<double>(sum.steps));
  auto lengths = static_cast<double>(sum.lengths);
  return short_time(sum.of_known / lengths) + " of the " + short_time(sum.whole / lengths) + " of such a " + unit;
}

std::string time_by_step(const std::vector<MemoryTime>& times, const std::string& unit) {
  MemoryTimes sum = sum_of(times);
  if (sum.seconds <= 0) return "";
  std::string text = short_time(sum.seconds) + " in " + std::to_string(sum.steps) + " " + unit + (sum.steps == 1 ? "" : "s");
  std::string each;
  std::size_t from = times.size() > kTold ? times.size() - kTold : 0;
  for (std::size_t i = from; i < times.size() && times[i].step != job::kNoStep; ++i)
    each += (each.empty() ? "step " : ", ") + std::to_string(times[i].step) + ": " + short_time(times[i].seconds);
  if (!each.empty()) text += std::string(" (") + (from ? "the newest: " : "") + each + ")";
  if (sum.retry_seconds > 0)
    text += "; of it " + short_time(sum.retry_seconds) + " from a refused request until the same one succeeded";
  return text;
}

}  // namespace dshang::detect
