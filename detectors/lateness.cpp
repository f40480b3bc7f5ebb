#include "detectors/lateness.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace dshang::detect {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

struct Sum {
  std::vector<double> late;
  std::uint64_t first_ns = UINT64_MAX;
  std::size_t first = 0, last = 0;  // meetings
  std::size_t calls = 0;
};

bool on_one_host(const JobView& view, const job::CommView& comm) {
  return std::all_of(comm.members.begin(), comm.members.end(), [&](const job::Member& member) {
    return view.ranks[member.process].records().host == view.ranks[comm.members[0].process].records().host;
  });
}

bool any_steps(const JobView& view) {
  return std::any_of(view.ranks.begin(), view.ranks.end(),
                     [](const job::RankView& rank) { return rank.records().step != job::kNoStep; });
}

// `late`: the longest that the others waited for one of them; who runs ahead by less is held up all the same.
bool are_held_up(const Meetings& meetings, const Meeting& meeting, double late) {
  constexpr std::uint64_t kSeenLate =
      25'000'000;  // the end of a call is seen at the poller's next round, or the one after
  std::uint64_t slack = std::max(kSeenLate, static_cast<std::uint64_t>(late / 2 * 1e9));
  std::size_t waited = 0;
  for (std::size_t m = 0; m < meeting.comings.size(); ++m) {
    std::size_t here = meeting.comings[m];
    if (here == SIZE_MAX || here + 1 >= meetings.comings[m].size()) continue;
    const Coming &mine = meetings.comings[m][here], &next = meetings.comings[m][here + 1];
    waited += next.call->enter_ns + slack >= mine.done_ns;
  }
  return 2 * waited > meeting.comings.size();
}

// At one of the meetings from `first` on, up to the first of the next period: a second that ends within a
// step says nothing at its end.
bool wait_somewhere(const Meetings& meetings, std::size_t first, std::size_t next, double late) {
  for (std::size_t i = first; i < next; ++i) {
    if (are_held_up(meetings, meetings.all[i], late)) return true;
  }
  return false;
}

// Of a step, or of the stretch of time in which the call was made; kNoStep = of none.
std::int64_t period_of(const job::Call& call, std::uint64_t period_ns) {
  return period_ns ? static_cast<std::int64_t>(call.enter_ns / period_ns) : call.step;
}

// When the oldest period began that is looked at; some more, as the first of them is cut.
std::uint64_t begin_of_periods(const job::CommView& comm, std::uint64_t period_ns) {
  constexpr std::size_t kMore = 3;
  const std::vector<const job::Call*>& calls = comm.members[0].calls;
  std::size_t periods = 0;
  std::uint64_t begin_ns = 0;
  std::int64_t newest = job::kNoStep;
  for (auto at = calls.rbegin(); at != calls.rend(); ++at) {
    std::int64_t period = period_of(**at, period_ns);
    if (period == job::kNoStep) continue;
    if (period != newest && ++periods > kPeriodsLookedAt + kMore) return begin_ns;
    newest = period;
    begin_ns = (*at)->enter_ns;
  }
  return 0;
}

// The sums by step, or by the second in which the first one came.  A time is counted once, also where several
// calls wait in it; and not while the one that is late waits for somebody itself.
std::map<std::int64_t, Sum> sums_of(const Meetings& meetings, std::uint64_t period_ns,
                                    const std::vector<std::vector<Stretch>>& waits) {
  std::map<std::int64_t, Sum> sums;
  std::uint64_t counted_ns = 0;  // how far it has been counted
  for (std::size_t i = 0; i < meetings.all.size(); ++i) {
    const Meeting& meeting = meetings.all[i];
    std::int64_t step = meetings.latest(meeting).call->step;
    if (period_ns == 0 && step == job::kNoStep) continue;
    Sum& sum = sums[period_ns ? static_cast<std::int64_t>(meeting.first_ns / period_ns) : step];
    if (sum.late.empty()) sum.late.resize(meetings.comings.size()), sum.first = i;
    std::uint64_t from = std::max(meeting.second_ns, counted_ns);
    if (meeting.last_ns > from) {
      const std::vector<Stretch>& own = waits[meetings.comm->members[meeting.latest].process];
      sum.late[meeting.latest] += static_cast<double>(outside({from, meeting.last_ns}, own)) / 1e9;
      counted_ns = meeting.last_ns;
    }
    sum.first_ns = std::min(sum.first_ns, meeting.first_ns);
    sum.last = i;
    ++sum.calls;
  }
  return sums;
}

Lateness look_at(const Meetings& meetings, bool has_steps, unsigned seconds,
                 const std::vector<std::vector<Stretch>>& waits) {
  Lateness lateness{meetings.comm, has_steps, seconds, {}};
  std::map<std::int64_t, Sum> sums = sums_of(meetings, has_steps ? 0 : seconds * kSecond, waits);
  for (auto at = sums.begin(); at != sums.end(); ++at) {
    auto next = std::next(at);
    if (next == sums.end()) break;
    Period period{at->first, at->second.late, 0, at->second.calls,
                  wait_somewhere(meetings, has_steps ? at->second.last : at->second.first, next->second.first,
                                 *std::max_element(at->second.late.begin(), at->second.late.end()))};
    if (next->second.first_ns > at->second.first_ns) {
      period.seconds = static_cast<double>(next->second.first_ns - at->second.first_ns) / 1e9;
    }
    lateness.periods.push_back(std::move(period));
  }
  if (lateness.periods.size() > kPeriodsLookedAt) {
    lateness.periods.erase(lateness.periods.begin(),
                           lateness.periods.end() - static_cast<std::ptrdiff_t>(kPeriodsLookedAt));
  }
  return lateness;
}

}  // namespace

Gathered gather(const JobView& view, unsigned longest) {
  Gathered gathered{any_steps(view), {}, {}};
  std::vector<const job::CommView*> comms;
  std::uint64_t since_ns = UINT64_MAX;  // alike for all: a rank that waits in one is excused in the others
  for (const job::CommView& comm : view.comms) {
    if (comm.members.size() < 2 || !comm.complete() || !on_one_host(view, comm)) continue;
    comms.push_back(&comm);
    since_ns = std::min(since_ns, begin_of_periods(comm, gathered.has_steps ? 0 : longest * kSecond));
  }
  for (const job::CommView* comm : comms) gathered.all.push_back(meetings_of(view, *comm, since_ns));
  gathered.waits = waits_in(view, gathered.all);
  return gathered;
}

std::vector<Lateness> lateness_of(const Gathered& gathered, unsigned seconds) {
  std::vector<Lateness> found;
  for (const Meetings& meetings : gathered.all) {
    if (Lateness one = look_at(meetings, gathered.has_steps, seconds, gathered.waits); !one.periods.empty())
      found.push_back(std::move(one));
  }
  return found;
}

std::size_t latest(const Period& period, double least) {
  auto at = std::max_element(period.late.begin(), period.late.end());
  return at == period.late.end() || *at < least ? SIZE_MAX
                                                : static_cast<std::size_t>(at - period.late.begin());
}

std::string pace_text(const Lateness& lateness) {
  double seconds = 0, calls = 0;
  for (const Period& period : lateness.periods)
    seconds += period.seconds, calls += static_cast<double>(period.calls);
  if (seconds <= 0) return "";
  char text[64];
  double per_second = (lateness.has_steps ? static_cast<double>(lateness.periods.size()) : calls) / seconds;
  std::snprintf(text, sizeof text, per_second < 10 ? "%.2g %s per second" : "%.0f %s per second", per_second,
                lateness.has_steps ? "steps" : "calls");
  return text;
}

}  // namespace dshang::detect
