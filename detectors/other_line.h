// Whether the ranks came to their parting through the same lines: what they did before may look alike (a forward
// pass of either of two models) and be another part of the program.
#pragma once

#include <optional>

#include "detectors/registry.h"

namespace dshang::detect {

// Where the told rank and the witness first were in different lines.
struct OtherLines {
  job::PlaceId told = 0, others = 0;
};

// Both knew both lines, and were always in the same one at the same time until then; absent where the lines are not
// known, were the same up to the parting, or differ on healthy ranks too (`if rank == 0`, one line for each kind of
// batch), and where the others only did once more what they had done in the step.  Only of partings that module visits
// show.
std::optional<OtherLines> came_through_other_lines(const JobView& view, const Divergence& d);

}  // namespace dshang::detect
