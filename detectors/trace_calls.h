// The same as trace_walk.h tells, for a rank without the probe.
//
// A pass with reductions of gradients is training.  Not known: which module broke a trace; told instead is
// the first line that gathers in the broken step and does not gather where the trace is COMPLETE.  A break is
// seen at the next forward pass, so the last one may not be seen yet.
#pragma once

#include "detectors/trace_walk.h"

namespace dshang::detect {

RankTrace trace_from_calls(const JobView& view, const job::RankView& rank);

}  // namespace dshang::detect
