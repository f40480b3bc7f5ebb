#include "detectors/waits.h"

#include <algorithm>
#include <map>

#include "core/flight/hash.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using job::Call;
using job::CommView;
using job::Member;
using job::RankView;

constexpr std::uint32_t kDirections = flight::kOpSend | flight::kOpRecv;

std::uint64_t p2p_key(std::uint32_t comm, std::uint32_t direction, std::int32_t peer, std::uint64_t number) {
  std::uint64_t key = flight::mix(comm, direction);
  key = flight::mix(key, static_cast<std::uint64_t>(peer));
  return flight::mix(key, number);
}

// Nothing was recorded of it since then: no call, return, completion or visit.
std::uint64_t newest_record(const JobView& view, const RankView& rank) {
  std::uint64_t newest = last_activity(view, rank);
  const auto& calls = rank.records().calls;
  for (std::uint64_t n = calls.first(); n < calls.end(); ++n) newest = std::max(newest, calls.at(n).done_ns);
  for (const job::Comm& comm : rank.records().comms) newest = std::max({newest, comm.ready_ns, comm.end_ns});
  return newest;
}

const Member* member_at(const CommView& comm, std::int32_t position) {
  for (const Member& member : comm.members) {
    if (member.position == position) return &member;
  }
  return nullptr;
}

}  // namespace

WaitGraph::WaitGraph(const JobView& view, Hosts hosts)
    : view_(view),
      heads_of_(view.ranks.size()),
      callers_(view.ranks.size()),
      free_callers_(view.ranks.size()),
      places_(view.ranks.size()),
      p2p_(view.ranks.size()) {
  for (std::size_t r = 0; r < view.ranks.size(); ++r) {
    collect(r);
    if (hosts != Hosts::kInNccl) join_streams(r);
    const RankView& rank = view.ranks[r];
    bool quiet =
        hosts == Hosts::kQuiet && lasted(view, rank, newest_record(view, rank)) >= view.stall_after();
    if (!quiet) look_for_free_callers(r);
    std::optional<GpuWait> wait = hosts == Hosts::kInNccl ? std::nullopt : gpu_wait_of(view, rank);
    bool in_cuda = wait && lasted(view, rank, wait->since_ns) >= needed_seconds(*wait);
    waits_on_host_.push_back((quiet || in_cuda) && !job::creating_since(rank));
  }
  for (Head& head : heads_) {
    for (const Call* call : head.calls) connect(head, *call);
  }
  solve();
}

void WaitGraph::collect(std::size_t r) {
  const RankView& rank = view_.ranks[r];
  const auto& calls = rank.records().calls;
  std::map<std::uint64_t, std::size_t> head_of_stream;
  for (std::uint64_t n = calls.first(); n < calls.end(); ++n) {
    const Call& call = calls.at(n);
    if (call.torn || call.number == 0 || (call.flags & flight::kCallFailed)) continue;
    std::uint32_t traits = view_.op_traits(rank, call);
    if (!(traits & (flight::kOpCollective | kDirections))) continue;
    if (traits & kDirections)
      p2p_[r][p2p_key(call.comm, traits & kDirections, call.root_or_peer, call.number)] = &call;
    if (job::is_held_back(call) || !job::waits_in(rank, call)) continue;
    auto [at, is_first] = head_of_stream.try_emplace(call.stream, heads_.size());
    if (is_first) {
      heads_.push_back({r, {}, false, true, {}});
      heads_of_[r].push_back(at->second);
    }
    Head& head = heads_[at->second];
    bool of_head = head.calls.empty() || (call.group && call.group == head.calls[0]->group);
    if (of_head) head.calls.push_back(&call);
    if (!(call.flags & flight::kCallReturned) || job::is_closing(call)) head.host_inside = true;
    places_[r].emplace(&call, Place{at->second, of_head || (call.flags & flight::kCallStarted)});
  }
}

// A call that its stream has not reached, although nothing is before it there, waits for another stream: for
// the oldest call that is outstanding, since nothing else of NCCL is.
void WaitGraph::join_streams(std::size_t r) {
  std::size_t oldest = heads_.size();
  for (std::size_t h : heads_of_[r]) {
    if (oldest == heads_.size() || heads_[h].calls[0]->enter_ns < heads_[oldest].calls[0]->enter_ns)
      oldest = h;
  }
  // The GPU is in that call; else it may be behind all of them with work of its own.
  if (oldest == heads_.size() || !(heads_[oldest].calls[0]->flags & flight::kCallStarted)) return;
  for (std::size_t h : heads_of_[r]) {
    const Call& first = *heads_[h].calls[0];
    bool reached = !(first.flags & flight::kCallStartMarked) || (first.flags & flight::kCallStarted);
    if (h == oldest || reached) continue;
    for (const Call* call : heads_[h].calls) places_[r].at(call) = Place{oldest, false};
  }
}

// Threads that are inside no wait and no call, and made one of the last calls of a communicator.  Those of a
// backward pass do not count: PyTorch's own thread makes them for the one that waits.
void WaitGraph::look_for_free_callers(std::size_t r) {
  constexpr unsigned kLastCalls = 8;
  const RankView& rank = view_.ranks[r];
  const auto& calls = rank.records().calls;
  const auto& threads = rank.records().threads;
  std::set<std::uint32_t> held;
  for (std::uint64_t n = calls.first(); n < calls.end(); ++n) {
    if (!calls.at(n).torn && !(calls.at(n).flags & flight::kCallReturned)) held.insert(calls.at(n).thread);
  }
  std::map<std::uint32_t, unsigned> seen;  // by communicator
  for (std::uint64_t n = calls.end(); n-- > calls.first();) {
    const Call& call = calls.at(n);
    if (call.torn || call.thread >= threads.size() || seen[call.comm]++ >= kLastCalls) continue;
    callers_[r].insert(call.comm);
    bool waits = threads[call.thread].inside || held.count(call.thread);
    if (!waits && !job::is_backward_phase(view_.names().text(call.phase))) free_callers_[r].insert(call.comm);
  }
}

// Who calls on a communicator that has not been used is not known: any thread that is free.
bool WaitGraph::may_come(const Member& member) const {
  const std::set<std::uint32_t>& free = free_callers_[member.process];
  return callers_[member.process].count(member.comm_index) ? free.count(member.comm_index) > 0
                                                           : !free.empty();
}

void WaitGraph::connect(Head& head, const Call& call) {
  const RankView& rank = view_.ranks[head.rank];
  std::uint32_t traits = view_.op_traits(rank, call);
  for (const CommView& comm : view_.comms) {
    const Member* member = comm.member_of(head.rank);
    if (!member || member->comm_index != call.comm) continue;
    if (traits & flight::kOpCollective) {
      for (const Member& other : comm.members) {
        if (&other == member || call.number < other.first) continue;
        connect_to(head, comm, *member, call, other,
                   other.has(call.number) ? &other.call(call.number) : nullptr);
      }
      return;
    }
    const Member* other = member_at(comm, call.root_or_peer);
    if (!other || other == member) return;
    std::uint32_t wanted = traits & flight::kOpSend ? flight::kOpRecv : flight::kOpSend;
    auto at = p2p_[other->process].find(p2p_key(other->comm_index, wanted, member->position, call.number));
    connect_to(head, comm, *member, call, *other, at == p2p_[other->process].end() ? nullptr : at->second);
    return;
  }
}

void WaitGraph::connect_to(Head& head, const CommView& comm, const Member& member, const Call& call,
                           const Member& other, const Call* others_call) {
  Edge edge{{&comm, &member, &call, &other, nullptr, false, false},
            other.process,
            std::nullopt,
            !others_call && may_come(other)};
  if (others_call) {
    edge.wait.group_open = job::is_held_back(*others_call);
    auto place = places_[other.process].find(others_call);
    bool behind = place != places_[other.process].end() && !place->second.first;
    if (!edge.wait.group_open && !behind) return;  // it is there, or nothing is known of it
    if (behind) {
      edge.head = place->second.head;
      edge.wait.behind = heads_[*edge.head].calls[0];
    }
  }
  head.edges.push_back(edge);
}

bool WaitGraph::holds(const Edge& edge) const {
  if (edge.head) return heads_[*edge.head].blocked;
  return !edge.may_come && stuck_host_[edge.rank];
}

// A host inside a call waits for that; else it may wait for any of its calls.
bool WaitGraph::host_is_stuck(std::size_t rank) const {
  const std::vector<std::size_t>& heads = heads_of_[rank];
  auto inside = [&](std::size_t h) { return heads_[h].host_inside; };
  if (std::any_of(heads.begin(), heads.end(), inside)) {
    return std::all_of(heads.begin(), heads.end(),
                       [&](std::size_t h) { return !inside(h) || heads_[h].blocked; });
  }
  return waits_on_host_[rank] && !heads.empty() &&
         std::all_of(heads.begin(), heads.end(), [&](std::size_t h) { return heads_[h].blocked; });
}

// Takes away what can still move, until nothing changes.
void WaitGraph::solve() {
  stuck_host_.assign(view_.ranks.size(), true);
  for (bool changes = true; changes;) {
    changes = false;
    for (Head& head : heads_) {
      bool blocked =
          std::any_of(head.edges.begin(), head.edges.end(), [&](const Edge& edge) { return holds(edge); });
      if (head.blocked && !blocked) head.blocked = false, changes = true;
    }
    for (std::size_t r = 0; r < stuck_host_.size(); ++r) {
      if (stuck_host_[r] && !host_is_stuck(r)) stuck_host_[r] = false, changes = true;
    }
  }
  for (std::size_t r = 0; r < heads_of_.size(); ++r) {
    const Head* oldest = nullptr;
    for (std::size_t h : heads_of_[r]) {
      if (heads_[h].blocked && (!oldest || heads_[h].calls[0]->enter_ns < oldest->calls[0]->enter_ns))
        oldest = &heads_[h];
    }
    if (oldest) stuck_.push_back(reason(*oldest)->wait);
  }
}

const WaitGraph::Edge* WaitGraph::reason(const Head& head) const {
  auto at = std::find_if(head.edges.begin(), head.edges.end(), [&](const Edge& edge) { return holds(edge); });
  return at == head.edges.end() ? nullptr : &*at;
}

// Of the calls that a stuck host may be waiting for: the one it is inside, else the oldest.
std::size_t WaitGraph::head_of_host(std::size_t rank) const {
  const std::vector<std::size_t>& heads = heads_of_[rank];
  std::size_t best = heads[0];
  for (std::size_t h : heads) {
    bool better = heads_[h].host_inside != heads_[best].host_inside
                      ? heads_[h].host_inside
                      : heads_[h].calls[0]->enter_ns < heads_[best].calls[0]->enter_ns;
    if (better) best = h;
  }
  return best;
}

std::vector<Wait> WaitGraph::cycle() const {
  std::vector<Wait> waits;
  auto start = std::find_if(heads_.begin(), heads_.end(), [](const Head& head) { return head.blocked; });
  if (start == heads_.end()) return waits;
  std::map<std::size_t, std::size_t> seen;  // head: index into waits
  std::size_t at = static_cast<std::size_t>(start - heads_.begin());
  while (seen.emplace(at, waits.size()).second) {
    const Edge& edge = *reason(heads_[at]);
    waits.push_back(edge.wait);
    at = edge.head ? *edge.head : head_of_host(edge.rank);
    waits.back().host_inside = !edge.head && heads_[at].host_inside;
  }
  waits.erase(waits.begin(), waits.begin() + static_cast<std::ptrdiff_t>(seen[at]));
  auto first = std::min_element(waits.begin(), waits.end(),
                                [](const Wait& a, const Wait& b) { return a.member->rank < b.member->rank; });
  std::rotate(waits.begin(), first, waits.end());
  return waits;
}

std::vector<Wait> WaitGraph::absent() const {
  std::vector<Wait> waits;
  for (const Head& head : heads_) {
    for (const Edge& edge : head.edges) {
      bool living = view_.ranks[head.rank].alive() && view_.ranks[edge.rank].alive();
      if (!edge.head && living) waits.push_back(edge.wait);
    }
  }
  return waits;
}

std::optional<GpuWait> gpu_wait_of(const JobView& view, const RankView& rank) {
  constexpr std::string_view kFunctions[] = {"cudaDeviceSynchronize",
                                             "cudaStreamSynchronize",
                                             "cudaStreamSynchronize_ptsz",
                                             "cudaEventSynchronize",
                                             "cudaFree",
                                             "cudaFreeHost"};
  const auto& calls = rank.records().calls;
  if (calls.empty() || calls.at(calls.end() - 1).torn) return std::nullopt;
  std::uint32_t index = calls.at(calls.end() - 1).thread;
  const auto& threads = rank.records().threads;
  if (index >= threads.size() || !threads[index].inside) return std::nullopt;
  const std::string& function = view.names().text(threads[index].inside);
  if (std::find(std::begin(kFunctions), std::end(kFunctions), function) == std::end(kFunctions))
    return std::nullopt;
  return GpuWait{function, threads[index].inside_since_ns};
}

double needed_seconds(const GpuWait& wait) {
  return wait.function == "cudaDeviceSynchronize" ? kDeviceSyncSeconds : kSyncSeconds;
}

double needed_seconds(const JobView& view, const std::vector<Wait>& ring, WaitGraph::Hosts hosts) {
  if (hosts == WaitGraph::Hosts::kInNccl) return kSyncSeconds;
  double needed = 0;
  for (const Wait& wait : ring) {
    std::optional<GpuWait> gpu = gpu_wait_of(view, view.ranks[wait.member->process]);
    needed = std::max(needed, gpu ? needed_seconds(*gpu) : kSyncSeconds);
  }
  return needed;
}

std::vector<std::string> host_evidence(const JobView& view, const std::vector<Wait>& ring,
                                       WaitGraph::Hosts hosts) {
  std::vector<std::string> lines;
  for (const Wait& wait : ring) {
    const RankView& rank = view.ranks[wait.member->process];
    std::optional<GpuWait> gpu = gpu_wait_of(view, rank);
    if (gpu && hosts != WaitGraph::Hosts::kInNccl) {
      lines.push_back("the host of rank " + std::to_string(rank.rank) + " has been inside " + gpu->function +
                      " for " + seconds_text(lasted(view, rank, gpu->since_ns)));
    }
  }
  if (hosts == WaitGraph::Hosts::kInCuda) {
    lines.push_back("judged: a host that has waited for the GPU for " +
                    seconds_text(needed_seconds(view, ring, hosts)) + " waits for what is outstanding there");
  } else if (hosts == WaitGraph::Hosts::kQuiet) {
    lines.push_back(
        "nothing was recorded of the hosts of these ranks since: they are taken to wait for these calls; " +
        threshold_text(view));
  }
  return lines;
}

double stood(const JobView& view, const std::vector<Wait>& ring) {
  std::uint64_t newest = 0;
  for (const Wait& wait : ring) newest = std::max(newest, since(wait));
  double shortest = view.ago(newest);
  for (const Wait& wait : ring)
    shortest = std::min(shortest, lasted(view, view.ranks[wait.member->process], newest));
  return shortest;
}

std::string place_of(const JobView& view, const Wait& wait) {
  std::string number = std::to_string(wait.call->number);
  const RankView& rank = view.ranks[wait.member->process];
  if (!is_point_to_point(view, wait)) return "call " + number + " of " + wait.comm->name;
  bool sends = view.op_traits(rank, *wait.call) & flight::kOpSend;
  return (sends ? "send " : "receive ") + number + " of " + wait.comm->name +
         (sends ? " to rank " : " from rank ") + std::to_string(wait.other->rank);
}

std::string wait_text(const JobView& view, const Wait& wait) {
  std::string text = "rank " + std::to_string(wait.member->rank) + " waits in " + place_of(view, wait);
  return is_point_to_point(view, wait) ? text : text + " for rank " + std::to_string(wait.other->rank);
}

std::string call_details(const JobView& view, const Wait& wait) {
  job::Side side = job::side_of(view, *wait.member, *wait.call);
  std::string text = call_text(side);
  if (side.step) text += ", step " + std::to_string(*side.step);
  if (side.phase) text += ", " + *side.phase;
  if (side.module) text += ", module " + *side.module;
  if (side.site) text += ", at " + *side.site;
  return text;
}

bool is_point_to_point(const JobView& view, const Wait& wait) {
  return view.op_traits(view.ranks[wait.member->process], *wait.call) & kDirections;
}

}  // namespace dshang::detect
