// memory-imbalance: in step after step one rank uses far more of its device than the others that do the same
// work.
//
// Compared are data-parallel ranks (else the whole job, if it has no smaller communicator): stages of a
// pipeline differ by design.  Counted is what torch had allocated at most in a step and what nobody accounts
// for (another process on the card shows there); without the probe, what was taken.  Where it is the bounds
// of the device that are near it is a warning, else worth knowing.
#include <algorithm>

#include "detectors/known_facts.h"
#include "detectors/memory_use.h"
#include "detectors/rank_list.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using job::MemoryStep;
using job::RankView;

constexpr std::size_t kLookedAt = 15;  // steps
constexpr std::size_t kLeast = 5;
constexpr double kFactor = 1.5, kShareOfDevice = 0.1, kNearFull = 0.8;
constexpr double kBatchFactor = 1.3;

struct Usage {
  const RankView* rank = nullptr;
  std::vector<const MemoryStep*> steps;
  std::uint64_t total = 0, used = 0, other = 0, init = 0;
  std::uint64_t batch = 0;  // elements
  const MemoryStep* typical = nullptr;
  std::uint64_t all() const { return used + other; }
};

std::uint64_t middle(std::vector<std::uint64_t> values) {
  if (values.empty()) return 0;
  auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// What was allocated when the engine was ready.
std::uint64_t allocated_at_init(const JobView& view, const RankView& rank) {
  const auto& all = rank.records().memory_steps;
  for (std::uint64_t n = all.first(); n < all.end(); ++n) {
    for (const job::MemoryPhase& phase : all.at(n).phases) {
      if (phase.phase && view.names().text(phase.phase) == "init") return phase.allocated;
    }
  }
  return 0;
}

std::optional<Usage> usage_of(const JobView& view, const RankView& rank) {
  Usage usage;
  usage.rank = &rank;
  usage.steps = memory_steps(rank, kLookedAt);
  usage.total = device_total(view, rank);
  if (usage.steps.size() < kLeast || usage.total == 0) return std::nullopt;
  std::vector<std::uint64_t> used, other;
  for (const MemoryStep* step : usage.steps) {
    used.push_back(used_peak(*step));
    if (Bytes bytes = unaccounted(*step)) other.push_back(*bytes);
  }
  usage.used = middle(used);
  usage.other = middle(other);
  usage.init = allocated_at_init(view, rank);
  usage.typical = usual_batch(usage.steps);
  if (usage.typical) usage.batch = elements(usage.typical->batch);
  return usage;
}

bool stands_out(const Usage& one, std::uint64_t others) {
  double more = static_cast<double>(one.all()) - static_cast<double>(others);
  return static_cast<double>(one.all()) > kFactor * static_cast<double>(others) &&
         more > kShareOfDevice * static_cast<double>(one.total);
}

enum class Why { kNotItsOwn, kBatch, kBegin, kUnknown };

struct Cause {
  Why why;
  std::string summary;
  std::vector<std::string> fix;
};

// What explains most of the difference.
Cause cause_of(const JobView& view, const Usage& heavy, const std::vector<Usage>& others) {
  auto of_others = [&](auto member) {
    std::vector<std::uint64_t> values;
    for (const Usage& one : others) values.push_back(one.*member);
    return middle(values);
  };
  std::uint64_t used = of_others(&Usage::used), other = of_others(&Usage::other),
                init = of_others(&Usage::init);
  std::uint64_t batch = of_others(&Usage::batch);
  std::uint64_t more = heavy.all() - (used + other);
  auto is_most = [&](std::uint64_t mine, std::uint64_t theirs) {
    return mine > theirs && (mine - theirs) * 2 > more;
  };
  if (is_most(heavy.other, other))
    return {Why::kNotItsOwn,
            bytes_text(heavy.other - other) + " of it were not allocated by this rank's own calls",
            {"Look with `nvidia-smi` who else is on this card: a process left over from an earlier run, a "
             "second job, or "
             "the other ranks of this one (a tensor on `cuda`, or a checkpoint loaded without "
             "`map_location`, before "
             "`torch.cuda.set_device(local_rank)` goes to card 0)."}};
  if (batch && static_cast<double>(heavy.batch) > kBatchFactor * static_cast<double>(batch)) {
    const Usage& peer = *std::find_if(others.begin(), others.end(),
                                      [&](const Usage& one) { return one.batch != 0 && one.batch <= batch; });
    return {Why::kBatch,
            "its batch is larger: " + batch_text(heavy.typical->batch) + ", on rank " +
                std::to_string(peer.rank->rank) + " " + batch_text(peer.typical->batch),
            {"Give every rank the same share: one batch size for all, and samples of like length together "
             "(sorted or "
             "packed), or a bound on tokens instead of samples."}};
  }
  if (is_most(heavy.init, init))
    return {Why::kBegin,
            "it held " + bytes_text(heavy.init - init) + " more when the engine was ready",
            {"Load and build the same on every rank: a checkpoint, teacher or EMA copy that only one rank "
             "keeps on its "
             "card belongs on the host (`map_location=\"cpu\"`), or on all."}};
  std::string phases = heavy.steps.empty() ? "" : phases_text(view, *heavy.steps.back());
  return {Why::kUnknown,
          phases,
          {"Look for what only this rank keeps on its card: metrics, outputs gathered on rank 0 (`gather` to "
           "one rank, "
           "torch.nn.DataParallel), an evaluation model, samples that are longer here."}};
}

// Ranks that use more for the same reason, the one that uses most first, which is told of.
Finding make_finding(const JobView& view, const std::vector<const Usage*>& alike, const Cause& cause,
                     const std::vector<Usage>& others) {
  const Usage& heavy = *alike.front();
  std::vector<std::uint64_t> theirs;
  for (const Usage& one : others) theirs.push_back(one.all());
  RankList more;
  Finding f;
  for (const Usage* one : alike) {
    f.suspects.push_back(one->rank->rank);
    if (one != &heavy) more.add(one->rank->rank, bytes_text(one->all()));
  }
  std::sort(f.suspects.begin(), f.suspects.end());
  f.type = "memory-imbalance";
  bool near_full = static_cast<double>(heavy.all()) > kNearFull * static_cast<double>(heavy.total);
  f.severity = near_full ? Severity::kWarning : Severity::kInfo;
  std::string heaviest = "rank " + std::to_string(heavy.rank->rank);
  f.summary = (more.empty() ? heaviest + " uses "
                            : job::ranks_text(f.suspects) + " use far more, " + heaviest + " ") +
              bytes_text(heavy.all()) + " of " + bytes_text(heavy.total) + " of device memory, the others " +
              bytes_text(middle(theirs)) + (cause.summary.empty() ? "" : "; " + cause.summary);
  f.step = heavy.steps.front()->step;
  auto parts = [](const Usage& one) {
    return "at most " + bytes_text(one.used) +
           (known(one.steps.back()->allocated_peak) ? " allocated by torch" : " taken from the device") +
           (one.other ? " and " + bytes_text(one.other) + " that nobody accounts for" : "");
  };
  f.evidence.push_back("rank " + std::to_string(heavy.rank->rank) + ": " + parts(heavy) + " (middle of " +
                       std::to_string(heavy.steps.size()) + " steps)");
  if (!more.empty()) f.evidence.push_back("for the same reason: " + more.text());
  const std::size_t before = f.evidence.size();
  for (const Usage& one : others) {
    if (f.evidence.size() == before + 4) break;
    f.evidence.push_back("rank " + std::to_string(one.rank->rank) + ": " + parts(one));
  }
  for (std::string& line : evidence_of_peak(view, *heavy.rank, *heavy.steps.back()))
    f.evidence.push_back(std::move(line));
  f.evidence.push_back(
      "judged: more than 1.5 times as much as the middle of the others, and by more than a tenth of "
      "the device");
  f.fix = cause.fix;
  f.at = view.seconds(heavy.steps.front()->time_ns);
  return f;
}

// Then its memory grew, and that is said.
bool creeps(const Work& work, Rank rank) {
  return std::any_of(work.findings.begin(), work.findings.end(), [&](const Finding& f) {
    return f.type == "memory-creep" && std::count(f.suspects.begin(), f.suspects.end(), rank) > 0;
  });
}

void look_at_group(Work& work, const std::vector<const RankView*>& ranks) {
  std::vector<Usage> usages;
  for (const RankView* rank : ranks) {
    if (std::optional<Usage> usage = usage_of(work.view, *rank)) usages.push_back(std::move(*usage));
  }
  if (usages.size() != ranks.size()) return;  // the steps of one say nothing of one that makes none
  std::vector<std::uint64_t> all;
  for (const Usage& usage : usages) all.push_back(usage.all());
  std::sort(all.begin(), all.end());
  std::uint64_t others = all[(all.size() - 1) / 2];  // of two the smaller one
  std::vector<Usage> heavy, rest;
  for (const Usage& usage : usages) (stands_out(usage, others) ? heavy : rest).push_back(usage);
  if (heavy.empty() || heavy.size() * 2 > usages.size()) return;
  std::stable_sort(heavy.begin(), heavy.end(),
                   [](const Usage& a, const Usage& b) { return a.all() > b.all(); });
  std::vector<std::pair<Cause, std::vector<const Usage*>>> reasons;
  for (const Usage& one : heavy) {
    if (creeps(work, one.rank->rank)) continue;
    Cause cause = cause_of(work.view, one, rest);
    auto same = std::find_if(reasons.begin(), reasons.end(),
                             [&](const auto& reason) { return reason.first.why == cause.why; });
    if (same == reasons.end())
      reasons.emplace_back(std::move(cause), std::vector<const Usage*>{&one});
    else
      same->second.push_back(&one);
  }
  for (const auto& [cause, alike] : reasons)
    work.findings.push_back(make_finding(work.view, alike, cause, rest));
}

void run(Work& work) {
  for (const DataParallelGroup& group : data_parallel_groups(work.view)) look_at_group(work, group.ranks);
}

}  // namespace

DSHANG_DETECTOR(73, "memory-imbalance", run);

}  // namespace dshang::detect
