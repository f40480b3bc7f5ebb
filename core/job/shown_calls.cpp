#include "core/job/shown_calls.h"

#include <algorithm>
#include <set>

namespace dshang::job {
namespace {

constexpr std::size_t kLookedAtClosely = 48;  // ranks

std::set<std::size_t> looked_at_closely(const JobView& view, const Report& report,
                                        const std::vector<RankClass>& classes,
                                        const std::vector<CallList>& lists) {
  std::set<std::size_t> chosen;
  auto add = [&](std::size_t process) {
    if (chosen.size() < kLookedAtClosely) chosen.insert(process);
  };
  for (const Finding& f : report.findings) {
    for (std::size_t r = 0; r < view.ranks.size(); ++r) {
      if (std::count(f.suspects.begin(), f.suspects.end(), view.ranks[r].rank)) add(r);
    }
  }
  for (const RankClass& one : classes) add(one.members.front());
  for (const CallList& list : lists) {
    for (const CallList::Class& one : list.classes) add(list.comm->members[one.members.front()].process);
  }
  return chosen;
}

// Positions in the ring of the calls that the lists show of their representatives.
void add_listed(const JobView& view, const std::vector<CallList>& lists,
                std::vector<std::set<std::uint64_t>>& wanted) {
  for (const CallList& list : lists) {
    for (const CallList::Class& one : list.classes) {
      const Member& member = list.comm->members[one.members.front()];
      const auto& calls = view.ranks[member.process].records().calls;
      for (std::uint64_t n = calls.first(); n < calls.end(); ++n) {
        const Call& call = calls.at(n);
        bool counted = view.op_traits(view.ranks[member.process], call) & flight::kOpCollective;
        bool listed = call.comm == member.comm_index && call.number >= list.from && call.number <= list.to;
        if (!call.torn && counted && listed) wanted[member.process].insert(n);
      }
    }
  }
}

}  // namespace

std::vector<ShownRank> choose_calls(const JobView& view, const Report& report,
                                    const std::vector<RankClass>& classes,
                                    const std::vector<CallList>& lists) {
  if (view.ranks.empty()) return {};
  std::set<std::size_t> closely = looked_at_closely(view, report, classes, lists);
  std::size_t others = view.ranks.size() - closely.size();
  auto share = [](std::size_t calls, std::size_t ranks) {
    return ranks == 0 ? 0 : std::min(kCallsShownOfARank, calls / ranks);
  };
  std::size_t close_share = share(others ? kCallsShown / 2 : kCallsShown, closely.size());
  std::size_t other_share = share(kCallsShown / 2, others);
  std::vector<std::set<std::uint64_t>> wanted(view.ranks.size());
  add_listed(view, lists, wanted);
  std::vector<ShownRank> shown(view.ranks.size());
  for (std::size_t r = 0; r < view.ranks.size(); ++r) {
    const auto& calls = view.ranks[r].records().calls;
    std::uint64_t newest = closely.count(r) ? close_share : other_share;
    std::uint64_t from = calls.end() - std::min(calls.size(), newest);
    for (std::uint64_t n = from; n < calls.end(); ++n) {
      if (!calls.at(n).torn) wanted[r].insert(n);
    }
    shown[r].calls.assign(wanted[r].begin(), wanted[r].end());
    shown[r].left_out = calls.end() - shown[r].calls.size();
  }
  return shown;
}

}  // namespace dshang::job
