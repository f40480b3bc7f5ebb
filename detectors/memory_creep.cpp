// memory-creep: the peak of a step grows from step to step, steadily, and will reach what the device can
// give.
//
// Looked at is what torch had allocated at most in each step; without the probe, what the process had taken
// from the device, which grows by whole segments.  What steady means, and what is taken for a warm-up, a
// plateau or a saw-tooth, is in memory_trend.h.  Who keeps the memory is not known: only in which phase it is
// highest.
#include <algorithm>
#include <cstdio>

#include "detectors/memory_trend.h"
#include "detectors/memory_use.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using job::MemoryStep;
using job::RankView;

constexpr double kLeastShare = 0.002;  // of the device, over the window
constexpr double kLeastBytes = 16.0 * (1 << 20);

struct Creep {
  const RankView* rank = nullptr;
  MemoryTrend trend;
  const MemoryStep* newest = nullptr;
  std::uint64_t limit = 0;
  bool by_torch = false;
};

std::optional<Creep> look_at(const JobView& view, const RankView& rank) {
  std::vector<const MemoryStep*> steps = memory_steps(rank);
  std::uint64_t total = device_total(view, rank);
  if (steps.empty() || total == 0) return std::nullopt;
  Creep creep{&rank, {}, steps.back(), 0, known(steps.back()->allocated_peak).has_value()};
  std::vector<MemoryPoint> points;
  for (const MemoryStep* step : steps) {
    // A step number that falls is a program that began again.
    if (!points.empty() && step->step <= points.back().step) points.clear();
    if (creep.by_torch != known(step->allocated_peak).has_value()) continue;
    points.push_back({step->step, static_cast<double>(used_peak(*step))});
  }
  creep.limit = within_reach(*creep.newest).value_or(total);
  double least = std::max(kLeastBytes, kLeastShare * static_cast<double>(total));
  auto trend = steady_growth(points, static_cast<double>(creep.limit), least);
  if (!trend) return std::nullopt;
  creep.trend = *trend;
  return creep;
}

std::string signed_bytes(double bytes) {
  return bytes_text(static_cast<std::uint64_t>(std::max(0.0, bytes)));
}

std::string per_step(double bytes) {
  return bytes >= 1 << 20 ? signed_bytes(bytes) : signed_bytes(100 * bytes) + " in 100 steps";
}

// Which phase holds more than it did: what stays until the next step shows in all of them.
std::string growth_by_phase(const JobView& view, const Creep& creep) {
  std::vector<const MemoryStep*> steps = memory_steps(*creep.rank, creep.trend.steps);
  std::string text;
  for (const job::MemoryPhase& now : steps.back()->phases) {
    if (!now.phase) continue;
    for (const job::MemoryPhase& then : steps.front()->phases) {
      if (then.phase != now.phase || then.allocated > now.allocated) continue;
      text += (text.empty() ? "" : ", ") + view.names().text(now.phase) + " " +
              bytes_text(now.allocated - then.allocated);
    }
  }
  return text.empty() ? "" : "grown by phase since step " + std::to_string(steps.front()->step) + ": " + text;
}

Finding make_finding(const JobView& view, const std::vector<Creep>& all) {
  const Creep& first = *std::min_element(all.begin(), all.end(), [](const Creep& a, const Creep& b) {
    return a.trend.full_at < b.trend.full_at;
  });
  Finding f;
  f.type = "memory-creep";
  f.severity = Severity::kWarning;
  for (const Creep& creep : all) f.suspects.push_back(creep.rank->rank);
  bool every = all.size() == view.ranks.size() && all.size() > 1;
  f.summary = (every ? "device memory of every rank" : "device memory of " + job::ranks_text(f.suspects)) +
              " grows by " + per_step(first.trend.bytes_per_step) +
              (first.trend.bytes_per_step >= 1 << 20 ? " a step" : "") +
              "; at this rate it runs out in step " + std::to_string(first.trend.full_at) +
              (all.size() > 1 ? " (rank " + std::to_string(first.rank->rank) + " first)" : "");
  std::int64_t begin = first.newest->step - static_cast<std::int64_t>(first.trend.steps);
  f.step = std::max<std::int64_t>(begin, 0);
  for (const Creep& creep : all) {
    if (f.evidence.size() == 4) {
      f.evidence.push_back("and " + std::to_string(all.size() - 4) + " more ranks");
      break;
    }
    f.evidence.push_back("rank " + std::to_string(creep.rank->rank) + ": " +
                         (creep.by_torch ? "what torch had allocated at most in a step"
                                         : "what the process had taken from the device") +
                         " grew from " + signed_bytes(creep.trend.from) + " to " +
                         signed_bytes(creep.trend.to) + " over " + std::to_string(creep.trend.steps) +
                         " steps; within reach are " + bytes_text(creep.limit) + ", reached in step " +
                         std::to_string(creep.trend.full_at));
  }
  if (std::string line = growth_by_phase(view, first); !line.empty()) f.evidence.push_back(line);
  f.evidence.push_back("judged: every quarter of these steps grew about as fast, and nothing was given back");
  f.fix = {
      "Look for what is kept from step to step: a loss or output added up or put into a list without "
      "`.item()` or "
      "`.detach()` keeps its whole graph; so do hooks, caches without a bound, and `retain_graph=True`.",
      "To see who keeps it: `torch.cuda.memory._record_memory_history()` for two steps and "
      "`torch.cuda.memory._dump_snapshot()`; gc.collect() helps only against cycles.",
      "If the sequence length grows on purpose, leave headroom for its end, or bound it."};
  const auto& steps = first.rank->records().memory_steps;
  for (std::uint64_t n = steps.first(); n < steps.end(); ++n) {
    if (steps.at(n).step == *f.step) f.at = view.seconds(steps.at(n).time_ns);
  }
  return f;
}

void run(Work& work) {
  std::vector<Creep> all;
  for (const RankView& rank : work.view.ranks) {
    if (std::optional<Creep> creep = look_at(work.view, rank)) all.push_back(*creep);
  }
  if (!all.empty()) work.findings.push_back(make_finding(work.view, all));
}

}  // namespace

DSHANG_DETECTOR(72, "memory-creep", run);

}  // namespace dshang::detect
