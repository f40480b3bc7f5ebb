#include "detectors/memory_table.h"

#include <algorithm>
#include <cstdio>

#include "detectors/memory_use.h"
#include "detectors/went_on.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using job::MemoryStep;
using job::RankView;

constexpr std::size_t kMostRows = 16;
constexpr double kTight = 0.95;  // of the device

struct Row {
  std::vector<Rank> ranks;
  std::string need, torch, others, where, verdict;
};

std::uint64_t other_of(const std::vector<const MemoryStep*>& steps) {
  std::uint64_t most = 0;
  for (const MemoryStep* step : steps) most = std::max(most, unaccounted(*step).value_or(0));
  return most;
}

std::string step_text(std::int64_t step) {
  return step == job::kNoStep ? "before the first step" : "step " + std::to_string(step);
}

std::string highest_in(const JobView& view, const MemoryStep& step) {
  const job::MemoryPhase* highest = nullptr;
  for (const job::MemoryPhase& phase : step.phases) {
    if (phase.phase && (!highest || phase.allocated > highest->allocated)) highest = &phase;
  }
  job::NameId phase = highest ? highest->phase : step.peak_phase;
  std::string text = phase ? view.names().text(phase) + ", " : "";
  return text + step_text(step.step);
}

// The first request that this rank could not satisfy; `went_on`: of those that it did without.
const job::AllocFailure* failure_of(const RankView& rank, bool went_on) {
  const auto& failures = rank.records().alloc_failures;
  for (std::uint64_t n = failures.first(); n < failures.end(); ++n) {
    const job::AllocFailure& failure = failures.at(n);
    if (!failure.time_ns || failure.retried) continue;
    if ((went_on_at(rank, failure.time_ns) != 0) == went_on) return &failure;
  }
  return nullptr;
}

// Its peak is that of an attempt which was given up.
bool is_given_up(const RankView& rank, const MemoryStep& step) {
  const auto& failures = rank.records().alloc_failures;
  for (std::uint64_t n = failures.first(); n < failures.end(); ++n) {
    const job::AllocFailure& failure = failures.at(n);
    bool in_it = failure.time_ns && !failure.retried && failure.step == step.step;
    if (in_it && went_on_at(rank, failure.time_ns)) return true;
  }
  return false;
}

bool row_of(const JobView& view, const RankView& rank, Row& row) {
  const auto& all = rank.records().memory_steps;
  std::vector<const MemoryStep*> steps;
  for (std::uint64_t n = all.first(); n < all.end(); ++n) {
    if (all.at(n).time_ns) steps.push_back(&all.at(n));
  }
  auto kept = std::stable_partition(steps.begin(), steps.end(),
                                    [&](const MemoryStep* step) { return !is_given_up(rank, *step); });
  if (kept != steps.begin()) steps.erase(kept, steps.end());
  std::uint64_t total = device_total(view, rank);
  const job::AllocFailure* failure = failure_of(rank, false);
  if (total == 0 || (steps.empty() && !failure)) return false;
  row.ranks = {rank.rank};
  std::uint64_t other = other_of(steps), need = 0, torch = 0;
  auto highest = std::max_element(steps.begin(), steps.end(), [](const MemoryStep* a, const MemoryStep* b) {
    return used_peak(*a) < used_peak(*b);
  });
  if (highest != steps.end()) {
    torch = used_peak(**highest);
    need = torch + other;
    row.where = highest_in(view, **highest);
  }
  if (failure) {
    Bytes free = known(failure->free);
    need = std::max(need, total - std::min(total, free.value_or(0)) + failure->size);
    row.where = (failure->phase ? view.names().text(failure->phase) + ", " : std::string()) +
                step_text(failure->step);
    row.verdict = "NO: " + bytes_text(failure->size) + " more were asked for";
  } else if (need > total) {
    row.verdict = "NO";
  } else {
    row.verdict = static_cast<double>(need) > kTight * static_cast<double>(total) ? "barely, " : "yes, ";
    row.verdict += bytes_text(total - need) + " left";
  }
  if (const job::AllocFailure* refused = failure ? nullptr : failure_of(rank, true))
    row.verdict += "; " + bytes_text(refused->size) + " more were refused" +
                   (refused->step == job::kNoStep ? "" : " in step " + std::to_string(refused->step)) +
                   ", and it went on";
  row.need = (failure ? "> " : "") + bytes_text(need);
  row.torch = torch ? bytes_text(torch) : "-";
  row.others = bytes_text(other);
  return true;
}

struct Widths {
  int ranks = 8, where = 0;
};

std::string line(const std::string& ranks, const Row& row, const Widths& widths) {
  char text[512];
  std::snprintf(text, sizeof text, "%-*s %11s %11s %11s  %-*s  %s", widths.ranks, ranks.c_str(), row.need.c_str(),
                row.torch.c_str(), row.others.c_str(), widths.where, row.where.c_str(), row.verdict.c_str());
  return text;
}

}  // namespace

std::vector<std::string> memory_table(const JobView& view, const std::string& gpu) {
  std::vector<Row> rows;
  std::uint64_t total = 0;
  for (const RankView& rank : view.ranks) {
    Row row;
    if (!row_of(view, rank, row)) continue;
    total = std::max(total, device_total(view, rank));
    // Ranks that need the same share a line.
    auto same = std::find_if(rows.begin(), rows.end(), [&](const Row& one) {
      return one.need == row.need && one.torch == row.torch && one.others == row.others &&
             one.where == row.where && one.verdict == row.verdict;
    });
    if (same == rows.end()) {
      rows.push_back(row);
    } else {
      same->ranks.push_back(rank.rank);
    }
  }
  if (rows.empty()) return {};
  const Row heading{{}, "at most", "by torch", "by others", "highest in", "fits"};
  Widths widths;
  widths.where = static_cast<int>(heading.where.size());
  for (std::size_t i = 0; i < rows.size() && i < kMostRows; ++i) {
    widths.ranks = std::max(widths.ranks, static_cast<int>(job::list_of(rows[i].ranks).size()));
    widths.where = std::max(widths.where, static_cast<int>(rows[i].where.size()));
  }
  std::vector<std::string> lines = {
      "memory that this run needed of " + gpu + " (" + bytes_text(total) + "):", line("rank", heading, widths)};
  for (std::size_t i = 0; i < rows.size() && i < kMostRows; ++i)
    lines.push_back(line(job::list_of(rows[i].ranks), rows[i], widths));
  if (rows.size() > kMostRows) lines.push_back("and " + std::to_string(rows.size() - kMostRows) + " more");
  return lines;
}

}  // namespace dshang::detect
