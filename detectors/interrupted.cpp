// interrupted: ranks that were asked to stop (Ctrl-C, scancel, pre-emption) with nothing wrong before.
#include <algorithm>

#include "detectors/ended.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

void run(Work& work) {
  auto stands = [](const Finding& f) { return !f.resolved; };
  if (std::any_of(work.findings.begin(), work.findings.end(), stands)) return;  // such endings are its consequences
  std::vector<Ended> all = endings(work.view);
  std::vector<Rank> stopped, gone;
  std::uint64_t first_ns = 0;
  std::string how;
  for (const Ended& ended : all) {
    gone.push_back(ended.rank->rank);
    bool stopped_here = ended.interrupted() || stopped_with_others(work.view, all, ended);
    if (!stopped_here || had_cause_before(work, ended)) continue;
    stopped.push_back(ended.rank->rank);
    if (!first_ns) first_ns = ended.death.time_ns, how = ended.text();
  }
  if (stopped.empty()) return;
  std::sort(stopped.begin(), stopped.end());
  Finding f;
  f.type = "interrupted";
  f.severity = Severity::kInfo;
  bool told = std::all_of(all.begin(), all.end(), [](const Ended& e) { return e.death.known != job::EndingKnown::kNo; });
  f.certainty = f.class_certainty = told ? Certainty::kProven : Certainty::kJudged;
  f.at = work.view.seconds(first_ns);
  f.summary = "the job was stopped from outside: " + job::ranks_text(stopped) + " ended (the first " + how + "); nothing was wrong before";
  f.evidence = {"ended on request: " + job::ranks_text(stopped)};
  work.findings.push_back(std::move(f));
  explain_missing(work, gone);
}

}  // namespace

DSHANG_DETECTOR(30, "interrupted", run);

}  // namespace dshang::detect
