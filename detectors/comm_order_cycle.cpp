// comm-order-cycle: ranks wait for each other across communicators.
//
// Proven, without a threshold, where the calls are queued behind each other on one stream, or where the host
// is inside a call of NCCL.  Where a rank has queued one call and not made the next, its host is taken to
// wait for the first when it is inside a function of CUDA that waits for the GPU, or when nothing was
// recorded of it for a stall threshold: judged.  Whether two calls were exchanged or one was left out cannot
// always be told: then the explanation is judged.
#include <algorithm>
#include <map>

#include "detectors/habit.h"
#include "detectors/programs.h"
#include "detectors/waits.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using job::Call;

// Those that do something else than more than half of the ranks of the ring's communicators.
std::vector<Rank> minority(const std::vector<Wait>& stuck) {
  std::map<std::pair<const job::CommView*, std::uint64_t>, std::vector<Rank>> by_call;
  for (const Wait& wait : stuck) by_call[{wait.comm, wait.call->number}].push_back(wait.member->rank);
  auto largest = std::max_element(by_call.begin(), by_call.end(), [](const auto& a, const auto& b) {
    return a.second.size() < b.second.size();
  });
  std::vector<Rank> rest;
  if (largest == by_call.end() || 2 * largest->second.size() <= stuck.size()) return rest;
  for (const auto& [call, ranks] : by_call) {
    if (&ranks != &largest->second) rest.insert(rest.end(), ranks.begin(), ranks.end());
  }
  std::sort(rest.begin(), rest.end());
  return rest;
}

// Those that first called something else than most; where no such half exists, those that do not go on as
// they did before, while others do.  Where that is not known, those that do something else than most.
std::vector<Rank> suspects_of(const JobView& view, const std::vector<Wait>& stuck) {
  std::vector<Rank> ranks;
  for (const Wait& wait : stuck) ranks.push_back(wait.member->rank);
  if (std::vector<Rank> apart = first_apart(view, ranks); !apart.empty()) return apart;
  std::vector<Rank> departing, following;
  for (const Wait& wait : stuck) {
    Goes goes = habit_of(view, view.ranks[wait.member->process]).goes;
    if (goes == Goes::kOtherwise) departing.push_back(wait.member->rank);
    if (goes == Goes::kAsBefore) following.push_back(wait.member->rank);
  }
  std::sort(departing.begin(), departing.end());
  if (!departing.empty()) return following.size() > departing.size() ? departing : std::vector<Rank>{};
  std::vector<Rank> rest = minority(stuck);
  bool goes_on = std::any_of(rest.begin(), rest.end(), [&](Rank rank) {
    return std::find(following.begin(), following.end(), rank) != following.end();
  });
  return goes_on ? std::vector<Rank>{} : rest;
}

// In how many earlier steps the rank called the communicator `now_first` before `now_second`, and the other
// way round.
struct Order {
  int as_now = 0, otherwise = 0;
};

Order earlier_order(const job::RankRecords& records, std::uint32_t now_first, std::uint32_t now_second,
                    std::int64_t before_step) {
  Order order;
  std::int64_t step = job::kNoStep;
  constexpr std::uint32_t kBoth = UINT32_MAX;
  std::uint32_t first = kBoth;  // communicator called first in this step, until the other is called too
  for (std::uint64_t n = records.calls.first(); n < records.calls.end(); ++n) {
    const Call& call = records.calls.at(n);
    if (call.torn || call.step == job::kNoStep || call.step >= before_step) continue;
    if (call.comm != now_first && call.comm != now_second) continue;
    if (call.step != step) {
      step = call.step;
      first = call.comm;
    } else if (first != kBoth && call.comm != first) {
      ++(first == now_first ? order.as_now : order.otherwise);
      first = kBoth;
    }
  }
  return order;
}

std::string seconds_ago(const JobView& view, const Wait& wait) { return seconds_text(view.ago(since(wait))); }

// How the wait of one rank holds up the rank before it in the ring.
std::string link_text(const JobView& view, const Wait& wait, const Wait& next) {
  std::string text = wait_text(view, wait) + " (" + call_details(view, wait) + ") for " +
                     seconds_ago(view, wait) + "; rank " + std::to_string(wait.other->rank);
  if (wait.group_open) return text + " has made it in a group that it has not closed";
  if (wait.behind) return text + " has queued it on the same stream behind " + place_of(view, next);
  return text + " has not made it: it waits in " + place_of(view, next);
}

bool all_queued(const std::vector<Wait>& ring) {
  return std::all_of(ring.begin(), ring.end(), [](const Wait& wait) { return wait.behind; });
}

// Ranks that take the communicators of the ring in another order than they did themselves in earlier steps.
std::vector<std::string> departures(const JobView& view, const std::vector<Wait>& ring) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const Wait& mine = ring[i];
    const Wait& before = ring[(i + ring.size() - 1) % ring.size()];  // waits for this rank, in `before.comm`
    const job::Member* in_other = before.comm->member_of(mine.member->process);
    if (!in_other || mine.call->step == job::kNoStep || before.comm == mine.comm) continue;
    Order order = earlier_order(view.ranks[mine.member->process].records(), mine.member->comm_index,
                                in_other->comm_index, mine.call->step);
    if (order.otherwise < 2 || order.as_now >= order.otherwise) continue;
    lines.push_back("rank " + std::to_string(mine.member->rank) + " now calls " + mine.comm->name +
                    " before " + before.comm->name + "; in its earlier steps it called " + before.comm->name +
                    " first");
  }
  return lines;
}

// Which communicators they are: those of equal size have names that tell nothing.
std::vector<std::string> communicators(const JobView& view, const std::vector<Wait>& ring) {
  std::vector<std::string> lines;
  for (const Wait& wait : ring) {
    const job::Comm& comm = view.ranks[wait.member->process].records().comms[wait.member->comm_index];
    std::string at = comm.site ? view.names().place_text(view.names().place_of(comm.site)) : "";
    if (at.empty()) continue;
    std::string line =
        wait.comm->name + " (" + job::ranks_text(wait.comm->ranks()) + ") was created at " + at;
    if (!std::count(lines.begin(), lines.end(), line)) lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> fixes(const JobView& view, const std::vector<Wait>& ring, bool queued) {
  std::string names;
  for (const Wait& wait : ring) {
    if (names.find(wait.comm->name) == names.npos) names += (names.empty() ? "" : ", ") + wait.comm->name;
  }
  std::vector<std::string> lines = {
      "Make the calls of the communicators " + names +
          " in the same order on all ranks: an order that depends on rank, data or a "
          "thread's timing (hooks of the backward pass, side streams, a set) is what crosses them.",
  };
  if (queued) {
    lines.push_back(
        "Calls queued on one stream run one after the other. Put each communicator on a stream of its own, "
        "or put the calls "
        "into one group (ncclGroupStart, ncclGroupEnd), which issues them together.");
  } else {
    lines.push_back(
        "Each rank waits on the host for its first call before it makes the second. Where the order cannot "
        "be made the same, "
        "queue both on separate streams and wait afterwards, or put them into one group (ncclGroupStart, "
        "ncclGroupEnd).");
  }
  if (std::any_of(ring.begin(), ring.end(),
                  [&](const Wait& wait) { return is_point_to_point(view, wait); })) {
    lines.push_back("Put sends and receives that belong together into one group (`batch_isend_irecv`).");
  }
  return lines;
}

void add_sides(const JobView& view, const std::vector<Wait>& stuck, Finding& f) {
  for (const Wait& wait : stuck) {
    job::Side side = job::side_of(view, *wait.member, *wait.call);
    side.ranks = {wait.member->rank};
    auto same = std::find_if(f.sides.begin(), f.sides.end(), [&](const job::Side& s) {
      return s.op == side.op && s.count == side.count && s.dtype == side.dtype && s.site == side.site &&
             s.module == side.module && s.phase == side.phase && s.step == side.step && s.peer == side.peer;
    });
    if (same == f.sides.end()) {
      f.sides.push_back(std::move(side));
    } else {
      same->ranks.push_back(wait.member->rank);
    }
  }
}

Finding make_finding(const JobView& view, const std::vector<Wait>& ring, const std::vector<Wait>& stuck,
                     WaitGraph::Hosts hosts) {
  Finding f;
  f.type = "comm-order-cycle";
  f.severity = Severity::kHang;
  f.certainty = hosts == WaitGraph::Hosts::kInNccl ? Certainty::kProven : Certainty::kJudged;
  const Wait& first = ring[0];
  f.comm = first.comm->name;
  f.comm_ranks = first.comm->ranks();
  f.call = first.call->number;
  f.suspects = suspects_of(view, stuck);
  for (const Wait& wait : stuck) {
    if (!std::count(f.suspects.begin(), f.suspects.end(), wait.member->rank))
      f.waiting.push_back(wait.member->rank);
  }
  if (first.call->step != job::kNoStep) f.step = first.call->step;
  add_sides(view, stuck, f);
  std::uint64_t since_ns = 0;
  for (std::size_t i = 0; i < ring.size(); ++i) {
    f.summary += (i ? ", " : "") + wait_text(view, ring[i]);
    f.evidence.push_back(link_text(view, ring[i], ring[(i + 1) % ring.size()]));
    since_ns = std::max(since_ns, since(ring[i]));
  }
  f.summary += ": a circle across communicators that none of them can leave";
  f.at = view.seconds(since_ns);
  if (stuck.size() > ring.size()) {
    std::vector<Rank> ranks;
    for (const Wait& wait : stuck) ranks.push_back(wait.member->rank);
    f.evidence.push_back("held up by it: " + job::ranks_text(ranks));
  }
  std::vector<std::string> created = communicators(view, ring), departed = departures(view, ring);
  f.evidence.insert(f.evidence.end(), created.begin(), created.end());
  f.evidence.insert(f.evidence.end(), departed.begin(), departed.end());
  bool queued = all_queued(ring);
  f.class_certainty = queued || !departed.empty() ? Certainty::kProven : Certainty::kJudged;
  if (f.class_certainty == Certainty::kJudged) {
    f.evidence.push_back("whether the calls were exchanged or one was left out is not recorded");
  }
  std::vector<std::string> hosts_say = host_evidence(view, ring, hosts);
  f.evidence.insert(f.evidence.end(), hosts_say.begin(), hosts_say.end());
  f.fix = fixes(view, ring, queued);
  return f;
}

bool crosses_communicators(const std::vector<Wait>& ring) {
  return std::any_of(ring.begin(), ring.end(), [&](const Wait& wait) { return wait.comm != ring[0].comm; });
}

void run(Work& work) {
  const JobView& view = work.view;
  for (const Finding& f : work.findings) {
    if (f.severity == Severity::kHang)
      return;  // what parted first, or a creation that some miss, is the cause
  }
  for (WaitGraph::Hosts hosts :
       {WaitGraph::Hosts::kInNccl, WaitGraph::Hosts::kInCuda, WaitGraph::Hosts::kQuiet}) {
    WaitGraph graph(view, hosts);
    std::vector<Wait> ring = graph.cycle();
    if (ring.empty() || !crosses_communicators(ring)) continue;
    // What one of them has always sent or received there, it did not: p2p_unmatched.cpp's.
    if (std::any_of(ring.begin(), ring.end(), [&](const Wait& wait) { return left_out_message(view, wait); }))
      return;
    if (stood(view, ring) < needed_seconds(view, ring, hosts)) return;
    work.findings.push_back(make_finding(view, ring, graph.stuck(), hosts));
    std::vector<Rank> ranks;
    for (const Wait& wait : graph.stuck()) ranks.push_back(wait.member->rank);
    for (std::size_t i = 0; i < work.divergences.size(); ++i) {
      const Divergence& d = work.divergences[i];
      bool concerned = std::any_of(d.missing.begin(), d.missing.end(),
                                   [&](Rank rank) { return std::count(ranks.begin(), ranks.end(), rank); });
      if (concerned) work.explained[i] = true;
    }
    return;
  }
}

}  // namespace

DSHANG_DETECTOR(16, "comm-order-cycle", run);

}  // namespace dshang::detect
