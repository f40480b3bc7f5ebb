// straggler: one rank comes last to the collectives, step after step, and the others wait for it.  The job
// advances.
//
// Judged over the last steps (seconds, where no steps are announced).  It cannot tell why the rank is late:
// more data, a slower device, or work that only it does.  Where the hosts of the others run ahead of the GPU
// nothing is said: a rank that is always late by as much costs nothing there.
#include <algorithm>

#include "detectors/lateness.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

constexpr std::size_t kFewest = 10;  // periods
constexpr double kOften = 0.8;       // of the periods in which it is the one waited for
constexpr double kShare = 0.2;       // of the time in which the others wait for it
constexpr double kShortest = 5;      // seconds that the periods cover: a busy host delays a rank for a moment
constexpr unsigned kLongest = 16;    // seconds of a period without steps
constexpr double kLeast = 0.03;      // seconds a period, below which scheduling alone may be the reason

std::optional<Finding> look_at(const JobView& view, const Lateness& lateness) {
  if (lateness.periods.size() < kFewest) return std::nullopt;
  const std::vector<job::Member>& members = lateness.comm->members;
  std::vector<std::size_t> times(members.size());
  std::vector<double> late(members.size());
  double seconds = 0;
  for (const Period& period : lateness.periods) {
    seconds += period.seconds;
    if (!period.held_up) continue;
    if (std::size_t member = latest(period, kLeast); member != SIZE_MAX) ++times[member];
    for (std::size_t m = 0; m < late.size(); ++m) late[m] += period.late[m];
  }
  auto most = static_cast<std::size_t>(std::max_element(times.begin(), times.end()) - times.begin());
  auto count = static_cast<double>(lateness.periods.size());
  if (static_cast<double>(times[most]) < kOften * count || seconds < kShortest ||
      late[most] < kShare * seconds)
    return std::nullopt;
  std::string unit = lateness.has_steps ? "steps"
                     : lateness.period_seconds == 1
                         ? "seconds"
                         : "stretches of " + std::to_string(lateness.period_seconds) + " s";
  Finding f;
  f.type = "straggler";
  f.severity = Severity::kInfo;
  f.suspects = {members[most].rank};
  f.comm = lateness.comm->name;
  f.comm_ranks = lateness.comm->ranks();
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
  return f;
}

void run(Work& work) {
  auto is_hang = [](const Finding& f) { return f.severity == Severity::kHang; };
  if (std::any_of(work.findings.begin(), work.findings.end(), is_hang)) return;
  Gathered gathered = gather(work.view, kLongest);
  // Without steps it is not known how long one takes: a second may lie within one.
  for (unsigned seconds = 1; seconds <= (gathered.has_steps ? 1 : kLongest); seconds *= 2) {
    for (const Lateness& lateness : lateness_of(gathered, seconds)) {
      std::optional<Finding> found = look_at(work.view, lateness);
      if (!found) continue;
      work.findings.push_back(std::move(*found));
      return;
    }
  }
}

}  // namespace

DSHANG_DETECTOR(80, "straggler", run);

}  // namespace dshang::detect
