// Python stacks of many ranks, merged from the outermost frame inwards: what all have in common is one
// branch, and where they part one sees who is where.
#pragma once

#include <vector>

#include "core/job/model.h"

namespace dshang::job {

struct StackNode {
  FrameName frame;
  std::vector<Rank> ranks;       // that have it on their stack, in the order of adding
  std::vector<Rank> end_here;    // whose innermost frame it is, read by the stack reader
  std::vector<Rank> call_here;   // the same, where the stack is that of the rank's newest call
  std::vector<StackNode> inner;  // in the order in which they were met
};

class StackTree {
 public:
  void add(Rank rank, const Site& site, bool is_call);
  const std::vector<StackNode>& outermost() const { return outermost_; }
  bool empty() const { return outermost_.empty(); }

 private:
  std::vector<StackNode> outermost_;
};

// The main thread of every rank: its newest stack, or the stack of its newest call where that is newer.
StackTree main_threads(const JobView& view);
// The newest stack of each other thread.
StackTree other_threads(const JobView& view);

}  // namespace dshang::job
