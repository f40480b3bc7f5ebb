// Rounds whose order is drawn anew each time: the same calls, whatever stands before which.
#pragma once

#include "core/job/divergence.h"

namespace dshang::job {

// Both sides have made whole rounds of a pass, each call as often as every other one; one side begins another
// round with a call of them, the other leaves the pass.
Repetition repetition_in_any_order(const Tokens& suspect, const Tokens& other, const Tokens& history);

}  // namespace dshang::job
