#include "detectors/lateness.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace dshang::detect {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

std::uint64_t arrival(const job::Call& call) { return std::max(call.enter_ns, call.started_ns); }

struct Sum {
  std::vector<double> late;
  std::uint64_t first_ns = UINT64_MAX;
  job::Seq first = 0, last = 0;  // calls
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

// The call of all members, where it is complete.  A time is counted once, also where several calls wait in
// it: `counted_ns` is how far it has been counted.
void add(const job::CommView& comm, job::Seq k, bool has_steps, std::map<std::int64_t, Sum>& sums,
         std::uint64_t& counted_ns) {
  std::uint64_t last = 0, second = 0, first = UINT64_MAX;
  const job::Member* latest = nullptr;
  for (const job::Member& member : comm.members) {
    if (!member.has(k) || !job::is_done(member.call(k))) return;
    std::uint64_t at = arrival(member.call(k));
    first = std::min(first, at);
    if (at >= last) {
      second = last;
      last = at;
      latest = &member;
    } else {
      second = std::max(second, at);
    }
  }
  const job::Call& call = latest->call(k);
  if (has_steps && call.step == job::kNoStep) return;
  Sum& sum = sums[has_steps ? call.step : static_cast<std::int64_t>(first / kSecond)];
  if (sum.late.empty()) sum.late.resize(comm.members.size()), sum.first = k;
  std::uint64_t from = std::max(second, counted_ns);
  if (last > from) {
    sum.late[static_cast<std::size_t>(latest - comm.members.data())] +=
        static_cast<double>(last - from) / 1e9;
    counted_ns = last;
  }
  sum.first_ns = std::min(sum.first_ns, first);
  sum.last = k;
  ++sum.calls;
}

// `late`: the longest that the others waited for one of them; who runs ahead by less is held up all the same.
bool are_held_up(const job::CommView& comm, job::Seq last, job::Seq next, double late) {
  constexpr std::uint64_t kSeenLate =
      25'000'000;  // the end of a call is seen at the poller's next round, or the one after
  std::uint64_t slack = std::max(kSeenLate, static_cast<std::uint64_t>(late / 2 * 1e9));
  auto waited = std::count_if(comm.members.begin(), comm.members.end(), [&](const job::Member& member) {
    return member.call(next).enter_ns + slack >= member.call(last).done_ns;
  });
  return 2 * static_cast<std::size_t>(waited) > comm.members.size();
}

// At one of the calls from `first` on, up to the first of the next period: a second that ends within a step
// says nothing at its end.
bool wait_somewhere(const job::CommView& comm, job::Seq first, job::Seq next, double late) {
  for (job::Seq k = first; k < next; ++k) {
    if (are_held_up(comm, k, k + 1, late)) return true;
  }
  return false;
}

Lateness look_at(const job::CommView& comm, bool has_steps) {
  Lateness lateness{&comm, has_steps, {}};
  job::Seq from = 0, to = UINT64_MAX;
  for (const job::Member& member : comm.members)
    from = std::max(from, member.first), to = std::min(to, member.last());
  std::map<std::int64_t, Sum> sums;
  std::uint64_t counted_ns = 0;
  for (job::Seq k = from; k <= to; ++k) add(comm, k, has_steps, sums, counted_ns);
  for (auto at = sums.begin(); at != sums.end(); ++at) {
    auto next = std::next(at);
    if (next == sums.end()) break;
    Period period{at->first, at->second.late, 0, at->second.calls,
                  wait_somewhere(comm, has_steps ? at->second.last : at->second.first, next->second.first,
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

std::vector<Lateness> lateness_of(const JobView& view) {
  std::vector<Lateness> all;
  bool has_steps = any_steps(view);
  for (const job::CommView& comm : view.comms) {
    if (comm.members.size() < 2 || !comm.complete() || !on_one_host(view, comm)) continue;
    if (Lateness one = look_at(comm, has_steps); !one.periods.empty()) all.push_back(std::move(one));
  }
  return all;
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
