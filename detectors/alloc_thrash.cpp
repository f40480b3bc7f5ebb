// alloc-thrash: the allocator gives segments back to the device and takes them again, step after step.
//
// Each such call waits for the device and stops the rank; the others wait for it in the next collective. Jobs
// that allocate from CUDA's own pools (cudaMallocAsync) are not judged: there it costs nothing.  Where no
// steps are announced, what happens in a second stands for a step.  What it costs is the time in these calls
// (memory_time.h); where that is known and next to nothing it is only worth knowing.
#include <algorithm>
#include <utility>

#include "detectors/lateness.h"
#include "detectors/memory_time.h"
#include "detectors/memory_use.h"
#include "detectors/rank_list.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using job::MemoryStep;

constexpr std::uint64_t kPairs = 8;              // frees with as many allocations, in a step
constexpr std::size_t kLookedAt = 16;            // steps
constexpr std::size_t kSteps = 5, kSeconds = 3;  // of them in which it happens
constexpr double kCostly = 0.01;                 // of a step
constexpr double kLate = 0.001;                  // seconds that are worth a word

bool is_thrash(const MemoryStep& step) {
  std::uint64_t less = std::min(step.allocations, step.frees), more = std::max(step.allocations, step.frees);
  return less >= kPairs && more <= 2 * less &&
         step.peak[static_cast<std::size_t>(flight::MemoryKind::kPool)] == 0;
}

struct Thrash {
  std::size_t rank = 0;  // index into JobView::ranks
  bool has_steps = false;
  std::size_t looked_at = 0;
  std::vector<const MemoryStep*> steps;  // in which it happened, newest first
  std::uint64_t pairs() const {          // median
    std::vector<std::uint64_t> counts;
    for (const MemoryStep* step : steps) counts.push_back(std::min(step->allocations, step->frees));
    std::nth_element(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(counts.size() / 2),
                     counts.end());
    return counts[counts.size() / 2];
  }
};

Thrash look_at(const JobView& view, std::size_t r) {
  Thrash thrash;
  thrash.rank = r;
  const auto& records = view.ranks[r].records();
  thrash.has_steps = records.step != job::kNoStep;
  for (std::uint64_t n = records.memory_steps.end();
       n-- > records.memory_steps.first() && thrash.looked_at < kLookedAt;) {
    const MemoryStep& step = records.memory_steps.at(n);
    if (step.time_ns == 0 || (step.step != job::kNoStep) != thrash.has_steps) continue;
    ++thrash.looked_at;
    if (is_thrash(step)) thrash.steps.push_back(&step);
  }
  return thrash;
}

bool is_enough(const Thrash& thrash) { return thrash.steps.size() >= (thrash.has_steps ? kSteps : kSeconds); }

// How late the rank was in the periods in which it happened.
std::string lateness_text(const Lateness& lateness, const Thrash& thrash) {
  const job::Member* member = lateness.comm ? lateness.comm->member_of(thrash.rank) : nullptr;
  if (!member) return "";
  auto index = static_cast<std::size_t>(member - lateness.comm->members.data());
  std::size_t last = 0, periods = 0;
  double least = 1e9, most = 0;
  for (const Period& period : lateness.periods) {
    bool among =
        !thrash.has_steps || std::any_of(thrash.steps.begin(), thrash.steps.end(),
                                         [&](const MemoryStep* step) { return step->step == period.number; });
    if (!among) continue;
    ++periods;
    if (latest(period, kLate) != index) continue;
    ++last;
    least = std::min(least, period.late[index]);
    most = std::max(most, period.late[index]);
  }
  if (last == 0) return "";
  std::string unit = thrash.has_steps ? "steps" : "seconds";
  return "it comes last in " + std::to_string(last) + " of " + std::to_string(periods) + " such " + unit +
         ", " + (short_time(least) == short_time(most) ? "" : short_time(least) + " to ") + short_time(most) +
         " late; the others wait for it";
}

std::string counts_of_others(const JobView& view, const std::vector<Rank>& suspects) {
  std::uint64_t most = 0;
  bool any = false;
  for (const job::RankView& rank : view.ranks) {
    if (std::count(suspects.begin(), suspects.end(), rank.rank)) continue;
    any = true;
    const auto& steps = rank.records().memory_steps;
    std::uint64_t from = steps.end() > steps.first() + kLookedAt ? steps.end() - kLookedAt : steps.first();
    for (std::uint64_t n = from; n < steps.end(); ++n) {
      if (steps.at(n).step != job::kNoStep)
        most = std::max(most, std::min(steps.at(n).allocations, steps.at(n).frees));
    }
  }
  return any ? "the other ranks: at most " + std::to_string(most) + " in a step" : "";
}

// Of the communicator of this rank in which most was called; empty where none can be compared.
Lateness busiest(const JobView& view, std::size_t rank) {
  Lateness best;
  std::size_t most = 0;
  for (Lateness& one : lateness_of(gather(view))) {
    std::size_t calls = 0;
    for (const Period& period : one.periods) calls += period.calls;
    if (calls > most && one.comm->member_of(rank)) most = calls, best = std::move(one);
  }
  return best;
}

void tell_each(const JobView& view, const std::vector<Thrash>& found, const Lateness& lateness,
               const std::string& unit, Finding& f) {
  RankLines lines(f.evidence);
  for (const Thrash& thrash : found) {
    if (!lines.next()) continue;
    f.evidence.push_back("rank " + std::to_string(view.ranks[thrash.rank].rank) + ": " +
                         std::to_string(thrash.pairs()) + " frees and allocations a " + unit + " in " +
                         std::to_string(thrash.steps.size()) + " of the last " +
                         std::to_string(thrash.looked_at));
    std::string time = time_by_step(memory_time(view.ranks[thrash.rank], thrash.steps), unit);
    f.evidence.push_back(time.empty() ? "how long these calls took was not recorded"
                                      : "time lost in these calls: " + time);
    if (std::string line = lateness_text(lateness, thrash); !line.empty()) f.evidence.push_back(line);
  }
}

void run(Work& work) {
  const JobView& view = work.view;
  std::vector<Thrash> found;
  for (std::size_t r = 0; r < view.ranks.size(); ++r) {
    if (Thrash thrash = look_at(view, r); is_enough(thrash)) found.push_back(std::move(thrash));
  }
  if (found.empty()) return;
  auto weight = [&](const Thrash& thrash) {
    return std::make_pair(sum_of(memory_time(view.ranks[thrash.rank], thrash.steps)).seconds, thrash.pairs());
  };
  const Thrash& worst = *std::max_element(
      found.begin(), found.end(), [&](const Thrash& a, const Thrash& b) { return weight(a) < weight(b); });
  Lateness lateness = busiest(view, worst.rank);
  Finding f;
  f.type = "alloc-thrash";
  bool is_costly = false;
  for (const Thrash& thrash : found) {
    MemoryTimes sum = sum_of(memory_time(view.ranks[thrash.rank], thrash.steps));
    is_costly = is_costly || sum.lengths == 0 || sum.seconds <= 0 || sum.share() >= kCostly;
  }
  f.severity = is_costly ? Severity::kWarning : Severity::kInfo;
  for (const Thrash& thrash : found) f.suspects.push_back(view.ranks[thrash.rank].rank);
  std::string unit = worst.has_steps ? "step" : "second";
  f.summary = job::ranks_text(f.suspects) +
              (f.suspects.size() == 1 ? " frees and re-allocates " : " free and re-allocate ") +
              std::to_string(worst.pairs()) + " segments of device memory in each " + unit;
  MemoryTimes cost = sum_of(memory_time(view.ranks[worst.rank], worst.steps));
  if (std::string time = time_a_step(cost, unit); !time.empty())
    f.summary += found.size() == 1
                     ? ", which takes " + time
                     : "; rank " + std::to_string(view.ranks[worst.rank].rank) + " loses " + time;
  if (worst.has_steps) f.step = worst.steps.back()->step;
  if (std::string pace = pace_text(lateness); !pace.empty())
    f.evidence.push_back("no hang: the job makes progress, " + pace);
  tell_each(view, found, lateness, unit, f);
  if (std::string line = counts_of_others(view, f.suspects); worst.has_steps && !line.empty())
    f.evidence.push_back(line);
  f.evidence.push_back("judged: at least " + std::to_string(kPairs) + " in a " + unit + ", in at least " +
                       std::to_string(worst.has_steps ? kSteps : kSeconds) + " of them");
  f.fix = {
      "Leave headroom on the device (smaller micro-batch, shorter sequences, activation checkpointing, "
      "offload): near the limit the "
      "allocator has to flush its cache to satisfy a request.",
      "Do not call torch.cuda.empty_cache() in the loop; where a flush is needed, flush on all ranks in the "
      "same step "
      "(`get_accelerator().empty_cache()`), so that they wait once and together."};
  if (!expandable_segments(view, view.ranks[worst.rank]))
    f.fix.push_back(
        "Try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: segments that grow need not be given back.");
  f.at = view.seconds(worst.steps.back()->time_ns);
  work.findings.push_back(std::move(f));
}

}  // namespace

DSHANG_DETECTOR(70, "alloc-thrash", run);

}  // namespace dshang::detect
