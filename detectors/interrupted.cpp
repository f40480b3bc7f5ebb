// interrupted: ranks that were asked to stop (Ctrl-C, scancel, pre-emption) with nothing wrong before.
//
// A launcher stops the rest when one rank fails: where a rank was not heard from, or ended without a record
// of how, it may be the one that failed, and what was before is not known.
#include <algorithm>

#include "detectors/ended.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

std::vector<Rank> not_heard_from(const JobView& view) {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < view.world_size; ++rank) {
    if (!view.by_rank(rank)) ranks.push_back(rank);
  }
  return ranks;
}

// Says what is not known of the others; whether there is anything.
bool add_unknown(const JobView& view, const std::vector<Ended>& all, Finding& f) {
  std::vector<Rank> unheard = not_heard_from(view), unrecorded;
  for (const Ended& ended : all) {
    if (ended.death.known == job::EndingKnown::kNo) unrecorded.push_back(ended.rank->rank);
  }
  std::sort(unrecorded.begin(), unrecorded.end());
  std::string unknown;
  if (!unheard.empty()) {
    unknown = job::ranks_text(unheard) + (unheard.size() == 1 ? " was" : " were") + " not heard from";
    f.evidence.push_back("nothing was recorded of " + job::ranks_text(unheard) +
                         ": a rank that fails before its first call of CUDA or NCCL, or whose flight file is "
                         "lost, is not seen");
  }
  if (!unrecorded.empty()) {
    unknown += (unknown.empty() ? "" : " and ") + std::string("it was not recorded how ") +
               job::ranks_text(unrecorded) + " ended";
  }
  if (unknown.empty()) return false;
  std::vector<Rank> both = unheard;
  both.insert(both.end(), unrecorded.begin(), unrecorded.end());
  std::sort(both.begin(), both.end());
  f.summary += "; " + unknown + ", so whether something was wrong before is not known";
  f.evidence.push_back("judged: a launcher that loses one rank stops the others the same way");
  f.fix = {"Look at the output of " + job::ranks_text(both) +
           " and of the launcher first: if one of them failed, that is the cause."};
  return true;
}

void run(Work& work) {
  auto stands = [](const Finding& f) { return !f.resolved; };
  if (std::any_of(work.findings.begin(), work.findings.end(), stands))
    return;  // such endings are its consequences
  std::vector<Ended> all = endings(work.view);
  std::vector<Rank> stopped, gone, asked;
  std::uint64_t first_ns = 0;
  std::string how;
  for (const Ended& ended : all) {
    gone.push_back(ended.rank->rank);
    bool stopped_here = ended.interrupted() || stopped_with_others(work.view, all, ended);
    if (!stopped_here || had_cause_before(work, ended)) continue;
    stopped.push_back(ended.rank->rank);
    if (ended.interrupted()) asked.push_back(ended.rank->rank);
    if (!first_ns) first_ns = ended.death.time_ns, how = ended.text();
  }
  if (stopped.empty()) return;
  std::sort(stopped.begin(), stopped.end());
  std::sort(asked.begin(), asked.end());
  Finding f;
  f.type = "interrupted";
  f.severity = Severity::kInfo;
  f.at = work.view.seconds(first_ns);
  f.summary = (asked.empty() ? "" : "the job was stopped from outside: ") + job::ranks_text(stopped) +
              " ended " + (asked.empty() ? "at once " : "") + "(" +
              (stopped.size() > 1 ? "the first " : "it ") + how + ")";
  if (!asked.empty()) f.evidence = {"ended on request: " + job::ranks_text(asked)};
  bool unknown = add_unknown(work.view, all, f);
  if (!unknown) f.summary += "; nothing was wrong before";
  f.certainty = f.class_certainty = unknown ? Certainty::kJudged : Certainty::kProven;
  work.findings.push_back(std::move(f));
  explain_missing(work, gone);
}

}  // namespace

DSHANG_DETECTOR(30, "interrupted", run);

}  // namespace dshang::detect
