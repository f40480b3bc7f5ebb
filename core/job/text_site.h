// Stacks in the readable form (dump.h): `file:line function | file:line function`, innermost first.  In file
// and function a space, `|`, `%` and control characters stand as %20 and so on; an unknown file is `?`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/job/names.h"

namespace dshang::job {

std::string frames_text(const std::vector<FrameName>& frames, const Names& names);

// Throws TextError.
std::vector<FrameName> frames_of(std::string_view text, Names& names);

}  // namespace dshang::job
