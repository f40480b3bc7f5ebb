// The records of a job as a trace for https://ui.perfetto.dev: per rank its calls, steps, phases, modules and
// memory, and what was found.
#pragma once

#include <cstdint>
#include <iosfwd>

#include "core/job/job.h"
#include "core/job/report.h"

namespace dshang::job {

inline constexpr std::uint64_t kEventsTraced = 4'000'000;  // calls and visits of all ranks together

// Writes a perfetto.protos.Trace.  Times are nanoseconds since job start.  Returns how many recorded calls
// and visits were left out: of each rank the oldest, where there are more than kEventsTraced.
std::uint64_t write_perfetto(const Job& job, const Report& report, std::ostream& out);

}  // namespace dshang::job
