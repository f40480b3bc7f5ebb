// Time-outs of collectives: whoever prints them is mostly not to blame.
#include <re2/re2.h>

#include <algorithm>

#include "explain/hits.h"
#include "explain/words.h"

namespace dshang::explain {
namespace {

Hits::Hit timed_out(const Observed& seen) {
  const auto& reports = seen.watchdog.reports();
  Hits::Hit hit;
  hit.place = seen.watchdog.first();
  hit.count = reports.size();
  for (const auto& report : reports) {
    if (report.rank >= 0) hit.speakers.insert({"", report.rank, false});
  }
  return hit;
}

// Ranks of the job that wait in nothing: those that the others wait for.
std::vector<int> silent(const Observed& seen, const std::vector<int>& waiting) {
  std::vector<int> silent;
  if (!seen.watchdog.whole_job() || waiting.size() < 2) return silent;
  int world = std::max({seen.world_size, seen.least_ranks, seen.nccl.ranks()});
  for (const Speaker& one : seen.speakers) world = one.local ? world : std::max(world, one.rank + 1);
  for (int rank = 0; rank < world; ++rank) {
    if (!std::binary_search(waiting.begin(), waiting.end(), rank)) silent.push_back(rank);
  }
  return silent;
}

// "rank 3", "ranks 2, 3".
std::string missing_at_barrier(const Sighting& sighting) {
  static const re2::RE2 kMissing(R"((Ranks? [\d, ]*\d) failed to pass monitoredBarrier)");
  std::string missing;
  if (re2::RE2::PartialMatch(sighting.text, kMissing, &missing)) missing[0] = 'r';
  return missing;
}

void barrier(const Entry& entry, const Observed& seen, Hits& hits) {
  const Sighting* sighting = seen.sighting(entry.id);
  if (!sighting || !gone_at_barrier(seen).empty()) return;
  std::string missing = missing_at_barrier(*sighting);
  if (missing.empty()) return hits.add(*sighting);
  hits.add({sighting->first, sighting->speakers, sighting->count, missing + " did not come to a barrier",
            sighting->text, "Look at what " + missing + " did last.", false});
}

std::string waiting_text(const std::vector<int>& ranks) { return ranks_text(ranks) + " waited"; }

void slow_phase(const Entry&, const Observed& seen, Hits& hits) {
  if (seen.watchdog.reports().empty()) return;
  auto sides = seen.watchdog.sides();
  if (sides.size() != 1) return;
  Hits::Hit hit = timed_out(seen);
  long timeout = seen.watchdog.reports().front().timeout_ms;
  hit.summary = waiting_text(sides[0].ranks) + " in " + sides[0].call.text();
  if (timeout > 0) hit.summary += " for " + std::to_string(timeout / 1000) + " s";
  std::vector<int> missing = silent(seen, sides[0].ranks);
  std::size_t known = missing.size() + sides[0].ranks.size();
  if (!missing.empty() && missing.size() * 2 < known) {
    hit.summary += "; " + ranks_text(missing) + " did not come to it: busy elsewhere, gone, or in other code";
    hit.fix = "Look at what " + ranks_text(missing) + " did last.";
  } else if (missing.empty() && sides[0].ranks.size() > 1) {
    hit.summary += ", all in the same call";
  }
  hits.add(hit);
}

void different_calls(const Entry&, const Observed& seen, Hits& hits) {
  if (seen.watchdog.reports().empty()) return;
  auto sides = seen.watchdog.sides();
  if (sides.size() < 2) return;
  Hits::Hit hit = timed_out(seen);
  hit.cause = true;
  std::size_t all = 0;
  std::vector<int> odd;
  constexpr std::size_t kShown = 4;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    all += sides[i].ranks.size();
    if (i) odd.insert(odd.end(), sides[i].ranks.begin(), sides[i].ranks.end());
    if (i < kShown)
      hit.summary += (i ? "; " : "the ranks wait in different calls: ") + ranks_text(sides[i].ranks) +
                     " in " + sides[i].call.text();
  }
  if (sides.size() > kShown) hit.summary += "; … (" + std::to_string(sides.size()) + " in all)";
  if (sides[0].ranks.size() * 2 > all) {
    std::sort(odd.begin(), odd.end());
    hit.summary += ". " + ranks_text(odd) +
                   (odd.size() == 1 ? " differs from the majority" : " differ from the majority");
  } else {
    hit.summary += ". No majority: neither side can be singled out";
  }
  hits.add(hit);
}

}  // namespace

// Those that it did not miss lose the connection, too, when it gives up: the same rank must have said both.
std::string gone_at_barrier(const Observed& seen) {
  const Sighting *missed = seen.sighting("E-28"), *closed = seen.sighting("E-07");
  if (!missed || !closed || seen.sighting("E-05")) return "";
  bool same = std::any_of(missed->speakers.begin(), missed->speakers.end(),
                          [&](const Speaker& who) { return closed->speakers.count(who) > 0; });
  return same ? missing_at_barrier(*missed) : "";
}

const Entries& watchdog_entries() {
  static const Entries entries = {
      {"X-46",
       Severity::kWillHang,
       "a collective timed out",
       {},
       "torch 1.x-2.14; DeepSpeed's default is 10 minutes in "
       "0.19.8, 30 up to 0.19.5",
       "these ranks wait for another one: it works alone for longer (preparing data, saving), has "
       "failed, or runs other code",
       "Look at the rank that is missing first. Only where one is busy alone: prepare the data before, "
       "DEEPSPEED_TIMEOUT "
       "(minutes), `ddp_timeout` (seconds); NCCL_TIMEOUT is read by nobody. Run it once with dshang "
       "preloaded.",
       "huggingface/transformers#32036, #38933; deepspeedai/DeepSpeed#8253",
       Role::kConsequence,
       {},
       slow_phase},
      {"E-01",
       Severity::kWillHang,
       "the ranks wait in different calls",
       {},
       "torch 1.x-2.14",
       "the ranks run different code: a module, a step or a save that only some of them do; equal-sized "
       "calls before this "
       "one may already have been paired wrongly",
       "Run the same calls on every rank. `dshang` in the job (or `dshang dry-run`) names the first call, "
       "the module and the "
       "line.",
       "docs/findings.md, argument-mismatch and order-differs",
       Role::kConsequence,
       {"X-46"},
       different_calls},
      {"E-02",
       Severity::kWillHang,
       "torch found ranks in different collectives",
       {{R"(Collectives differ in the following aspects)"},
        {R"(Detected mismatch between collectives on ranks)"},
        {R"(but Rank \d+ is running collective: CollectiveFingerPrint)"}},
       "torch 1.x-2.14 with TORCH_DISTRIBUTED_DEBUG=DETAIL",
       "the ranks run different code",
       "Compare what the two ranks do at this line. Torch names one pair only: with more ranks let `dshang` "
       "say which one "
       "departs from the others.",
       "torch.distributed",
       Role::kCause,
       {"X-46"}},
      {"E-03",
       Severity::kWillHang,
       "torch's watchdog thread itself got stuck",
       {{R"(ProcessGroupNCCL's watchdog got stuck for \d+ seconds)"}},
       "torch >= 2.2",
       "a rank that has ended or waits in CUDA's teardown, host memory that is used up, and rarely the lock "
       "of Python that "
       "the text names",
       "Look at the other ranks: which one ended, or left the training loop, before?",
       "pytorch/pytorch, ProcessGroupNCCL",
       Role::kConsequence},
      {"E-04",
       Severity::kWillHang,
       "a communicator could not be created: the first rank's identifier did not come",
       {{R"(retrieving ncclUniqueId from \[\d+\] via c10d key-value store)"}},
       "torch >= 2.1",
       "mostly no fault of the network: that rank is busy (preparing data) or has died",
       "Look at what the rank in brackets did at that time.",
       "pytorch/pytorch, ProcessGroupNCCL",
       Role::kConsequence},
      {"E-05",
       Severity::kWillHang,
       "ranks waited in the store for one that did not come",
       {{R"(wait timeout after \d+ms, keys: )"},
        {R"(Monitored Barrier.*failed due to timeout)"},
        {R"(monitoredBarrier timeout)"},
        {R"(Rank \d+ successfully reached monitoredBarrier, but received errors)"},
        {R"(Timed out waiting \d+ms for recv operation to complete)"}},
       "torch 2.x (gloo, TCPStore)",
       "another rank is busy, has failed, or runs other code",
       "Look at the rank that is missing first.",
       "torch.distributed",
       Role::kConsequence},
      {"E-28",
       Severity::kWillHang,
       "a rank did not come to a barrier",
       {{R"(Ranks? [\d, ]*\d failed to pass monitoredBarrier in \d+ ms)"}},
       "torch 1.x-2.14 (gloo)",
       "that rank is busy, has failed, or runs other code; rank 0 names it, the others only notice that rank "
       "0 "
       "gave up",
       "The line of rank 0 names the missing rank: `wait_all_ranks=True` makes it name all of them.",
       "torch.distributed.monitored_barrier",
       Role::kConsequence,
       {"E-05", "E-07"},
       barrier},
  };
  return entries;
}

}  // namespace dshang::explain
