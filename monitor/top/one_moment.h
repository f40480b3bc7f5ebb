// The ranks of a running job at one and the same moment.
//
// The node-local copies of its ranks are made one after the other and may be of different age; what each
// recorded is dated, so that all can be looked at as they were when the oldest copy was made.  That is known by the
// last round of the rank's poller, many times a second.
#pragma once

#include <cstdint>

#include "core/job/job.h"

namespace dshang::monitor {

// Puts every rank back to that moment, and returns it; 0 where nothing was changed: the ranks are on several
// machines, whose clocks differ, or none has a poller (DSHANG_GPU_MARKS=0), or none lives.  A poller that was silent
// for longer than copies lie apart holds nobody back: it is inside the driver.
std::uint64_t take_one_moment(job::Job& job);

}  // namespace dshang::monitor
