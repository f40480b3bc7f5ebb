// Calls with equal arguments of which one rank made some more, or some less: from there on each of its calls
// is paired with another one's neighbour, and as long as the arguments agree nothing stops.
#pragma once

#include <optional>
#include <vector>

#include "core/job/model.h"

namespace dshang::job {

struct Shift {
  Seq first = 0, last = 0;     // the stretch in which calls are paired with their neighbours
  std::size_t by = 0;          // so many calls
  std::size_t mispaired = 0;   // calls of it that stand beside one from another place
  std::vector<Rank> suspects;  // empty: a tie
  Rank told_of = -1, witness = -1;
  bool ahead = false;  // those that are told of left calls out, and are ahead of the others
};

// Linear in the number of calls.  Two lines that stand for each other in turns look shifted too; so the calls
// must have stood beside their like for a while before, come from at least three places, and go on shifted
// for a while.
std::optional<Shift> find_shift(const JobView& view, const CommView& comm);

}  // namespace dshang::job
