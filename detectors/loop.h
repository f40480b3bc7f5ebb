// Whether a call was made inside the training loop, as Python stacks show it.
#pragma once

#include "detectors/registry.h"

namespace dshang::detect {

// True where a function on the way to the call stood between two lines from which it, called the same way,
// did something in each of the rank's last finished steps: these lines are in the loop, and so is what lies
// between them.  False where that is not known: a line behind them may be the end of the loop's body, or be
// behind the loop.
bool is_in_loop(const JobView& view, const job::RankView& rank, const job::Call& call);

}  // namespace dshang::detect
