// What the calls alone say of the trace of modules that DeepSpeed's ZeRO-3 keeps.
//
// At the start of each forward pass of the whole model DeepSpeed compares the ranks' traces by broadcasts of
// 64-bit integers from rank 0 of world.  Their number is the mode: none while the trace is COMPLETE; one
// check, of an empty list, where it was INVALID, from here on it is recorded; three (modules, parameters,
// their last uses) where the record is done, from here on it is COMPLETE.  A check is two broadcasts, of the
// length and of the list; before 0.17.6 it was the second alone. Source: DeepSpeed 0.19.8,
// runtime/zero/partitioned_param_coordinator.py reset_step, runtime/zero/utils.py
// assert_ints_same_as_other_ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "core/job/model.h"

namespace dshang::job {

enum class TraceMode : std::uint8_t { kRecord, kComplete };

struct TraceCheck {
  TraceMode mode = TraceMode::kRecord;  // from here on
  std::uint64_t begin = 0, end = 0;     // its calls, by their number in the rank's ring
};

// Oldest first.  Where call sites are read the broadcasts must come from reset_step; else their numbers and
// counts must fit exactly, so that other broadcasts of integers are left out.  A check that is not finished
// is not there yet.
std::vector<TraceCheck> trace_checks(const JobView& view, const RankView& rank);

}  // namespace dshang::job
