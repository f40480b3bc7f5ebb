// Functions of the user's that are named for saving, evaluating, logging or loading, where no phase says so:
// the line that calls may be the model's own, and only a function further out tells an evaluation from a
// training pass.
#pragma once

#include <string>

#include "detectors/registry.h"

namespace dshang::detect {

// The function that the others are in where the ranks part, while those that the story tells of were not in
// it when the others entered it; "" = there is none, or the story is another.
std::string side_function_left_out(const JobView& view, const Divergence& d);

// The other way round: those that the story tells of are in it alone, and go on as the others behind it.
std::string side_function_added(const JobView& view, const Divergence& d);

}  // namespace dshang::detect
