#include "core/job/stack_tree.h"

#include <algorithm>
#include <set>

#include "core/job/classes.h"

namespace dshang::job {

void StackTree::add(Rank rank, const Site& site, bool is_call) {
  std::vector<StackNode>* level = &outermost_;
  for (std::size_t i = site.frames.size(); i-- > 0;) {
    const FrameName& frame = site.frames[i];
    auto at =
        std::find_if(level->begin(), level->end(), [&](const StackNode& n) { return n.frame == frame; });
    if (at == level->end()) at = level->insert(at, StackNode{frame, {}, {}, {}, {}});
    if (at->ranks.empty() || at->ranks.back() != rank) at->ranks.push_back(rank);
    if (i == 0) (is_call ? at->call_here : at->end_here).push_back(rank);
    level = &at->inner;
  }
}

StackTree main_threads(const JobView& view) {
  StackTree tree;
  for (const RankView& rank : view.ranks) {
    RankState state = state_of(view, rank);
    if (state.site) tree.add(rank.rank, view.names().site(state.site), !state.site_is_stack);
  }
  return tree;
}

StackTree other_threads(const JobView& view) {
  StackTree tree;
  for (const RankView& rank : view.ranks) {
    const RankRecords& records = rank.records();
    std::set<std::uint32_t> seen{static_cast<std::uint32_t>(records.pid)};
    for (std::uint64_t n = records.stacks.end(); n-- > records.stacks.first();) {
      const Stack& stack = records.stacks.at(n);
      if (stack.time_ns == 0 || !stack.site || !seen.insert(stack.tid).second) continue;
      tree.add(rank.rank, view.names().site(stack.site), false);
    }
  }
  return tree;
}

}  // namespace dshang::job
