// straggler: one rank comes last to the collectives, step after step, and the others wait for it.  The job
// advances.
//
// Judged over the last steps (seconds, where no steps are announced).  It cannot tell why the rank is late:
// more data, a slower device, or work that only it does.
#include <algorithm>

#include "detectors/lateness.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

constexpr std::size_t kFewest = 10;  // periods
constexpr double kOften = 0.8;       // of the periods in which it is the one waited for
constexpr double kShare = 0.2;       // of the time in which the others wait for it
constexpr double kLeast = 0.03;      // seconds a period, below which scheduling alone may be the reason

void run(Work& work) {
  const JobView& view = work.view;
  if (std::any_of(work.findings.begin(), work.findings.end(),
                  [](const Finding& f) { return f.severity == Severity::kHang; }))
    return;
  Lateness lateness = lateness_of(view);
  if (lateness.periods.size() < kFewest) return;
  std::vector<std::size_t> times(view.ranks.size());
  std::vector<double> late(view.ranks.size());
  double seconds = 0;
  for (const Period& period : lateness.periods) {
    seconds += period.seconds;
    if (std::size_t rank = latest(period, kLeast); rank != SIZE_MAX) ++times[rank];
    for (std::size_t r = 0; r < late.size(); ++r) late[r] += period.late[r];
  }
  auto most = static_cast<std::size_t>(std::max_element(times.begin(), times.end()) - times.begin());
  double count = static_cast<double>(lateness.periods.size());
  if (static_cast<double>(times[most]) < kOften * count || late[most] < kShare * seconds) return;
  std::string unit = lateness.has_steps ? "steps" : "seconds";
  Finding f;
  f.type = "straggler";
  f.severity = Severity::kInfo;
  f.suspects = {view.ranks[most].rank};
  f.summary = "rank " + std::to_string(f.suspects[0]) + " is late: the others waited for it in " +
              std::to_string(times[most]) + " of the last " + std::to_string(lateness.periods.size()) + " " +
              unit + ", " + seconds_text(late[most]) + " of " + seconds_text(seconds);
  f.evidence.push_back("the job makes progress: " + pace_text(lateness));
  f.evidence.push_back("judged: it comes last in at least 80 % of the " + unit +
                       " and costs at least 20 % of their time");
  f.fix = {
      "Look at what this rank does that the others do not: logging, saving, longer sequences, an uneven "
      "shard of the data.",
      "If it does the same, compare its device with the others' (clocks, temperature, ECC errors, a second "
      "process on it)."};
  f.at = view.seconds(view.now_ns());
  work.findings.push_back(std::move(f));
}

}  // namespace

DSHANG_DETECTOR(80, "straggler", run);

}  // namespace dshang::detect
