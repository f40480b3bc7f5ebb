// How fast a rank trains.
#pragma once

#include <cstdint>

#include "core/job/records.h"

namespace dshang::monitor {

// Over the last steps that are known; -1 = fewer than two were announced.  It falls while a step lasts longer
// than those before it, so that a rank that stands does not keep its rate.  `now_ns`: CLOCK_MONOTONIC of the
// rank's machine.
double steps_per_second(const job::RankRecords& records, std::uint64_t now_ns);

}  // namespace dshang::monitor
