// Side-by-side lists: which members of a communicator made the same calls around the parting.
#include <algorithm>
#include <unordered_map>

#include "core/flight/hash.h"
#include "core/job/classes.h"

namespace dshang::job {
namespace {

const Finding* finding_of(const Report& report, const CommView& comm) {
  for (const Finding& f : report.findings) {
    if (f.comm && *f.comm == comm.name) return &f;
  }
  return nullptr;
}

// What a member did in the stretch, as one number.
std::uint64_t key_of(const JobView& view, const Member& member, Seq from, Seq to) {
  using flight::mix;
  const RankView& rank = view.ranks[member.process];
  std::uint64_t key = mix(0, std::min(member.last(), to));
  for (Seq k = std::max(from, member.first); k <= std::min(member.last(), to); ++k) {
    const Call& call = member.call(k);
    key = mix(mix(key, k), signature(rank, call));
    key = mix(mix(key, call.module), call.phase);
    key = mix(key, static_cast<std::uint64_t>(call.step));
    key = mix(key, view.names().place_of(call.site));
  }
  if (member.last() >= from && member.last() <= to)
    key = mix(key, is_outstanding(member.call(member.last())) ? 2 : 1);
  return key;
}

bool somebody_waits(const JobView& view, const CommView& comm) {
  return std::any_of(comm.members.begin(), comm.members.end(), [&](const Member& member) {
    return !member.calls.empty() && waits_in(view.ranks[member.process], *member.calls.back());
  });
}

void choose_stretch(const CommView& comm, CallList& list) {
  Seq shortest = UINT64_MAX, longest = 0;
  for (const Member& member : comm.members) {
    shortest = std::min(shortest, member.last());
    longest = std::max(longest, member.last());
  }
  Seq parting = std::min(shortest + 1, longest);
  if (list.finding) {
    if (list.finding->call) parting = std::min(parting, *list.finding->call);
    if (list.finding->origin) parting = std::min(parting, *list.finding->origin);
  }
  list.from = parting > kListBefore ? parting - kListBefore : 1;
  list.to = std::min(longest, list.from + kListLongest - 1);
}

void put_in_order(const Report& report, CallList& list) {
  auto suspected = [&](const CallList::Class& one) {
    if (report.findings.empty()) return false;
    const std::vector<Rank>& suspects = report.findings[0].suspects;
    return std::any_of(one.members.begin(), one.members.end(), [&](std::size_t m) {
      return std::count(suspects.begin(), suspects.end(), list.comm->members[m].rank) > 0;
    });
  };
  std::stable_sort(list.classes.begin(), list.classes.end(),
                   [](const auto& a, const auto& b) { return a.members.size() > b.members.size(); });
  if (list.classes.size() > 1) std::stable_partition(list.classes.begin() + 1, list.classes.end(), suspected);
  if (list.classes.size() <= kClassesListed) return;
  list.classes_left_out = list.classes.size() - kClassesListed;
  list.classes.resize(kClassesListed);
}

void find_classes(const JobView& view, const Report& report, CallList& list) {
  std::unordered_map<std::uint64_t, std::size_t> by_key;
  for (std::size_t m = 0; m < list.comm->members.size(); ++m) {
    std::uint64_t key = key_of(view, list.comm->members[m], list.from, list.to);
    auto [at, is_new] = by_key.try_emplace(key, list.classes.size());
    if (is_new) list.classes.push_back({});
    list.classes[at->second].members.push_back(m);
  }
  put_in_order(report, list);
}

}  // namespace

std::vector<CallList> call_lists(const JobView& view, const Report& report) {
  struct Candidate {
    const CommView* comm;
    const Finding* finding;
    int order;
  };
  std::vector<Candidate> candidates;
  for (const CommView& comm : view.comms) {
    bool any = std::any_of(comm.members.begin(), comm.members.end(),
                           [](const Member& member) { return !member.calls.empty(); });
    if (!any) continue;
    const Finding* finding = finding_of(report, comm);
    candidates.push_back({&comm, finding, finding ? 0 : somebody_waits(view, comm) ? 1 : 2});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.order < b.order; });
  if (candidates.size() > kListsShown) candidates.resize(kListsShown);
  std::vector<CallList> lists;
  for (const Candidate& one : candidates) {
    CallList list;
    list.comm = one.comm;
    list.finding = one.finding;
    choose_stretch(*one.comm, list);
    find_classes(view, report, list);
    lists.push_back(std::move(list));
  }
  return lists;
}

}  // namespace dshang::job
