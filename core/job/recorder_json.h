// Reads the JSON form of a Flight Recorder dump (torch's `_dump_nccl_trace_json`), which has no frames.
//
// Failure: throws std::runtime_error with one line that says what and where.
#pragma once

#include <string_view>

#include "core/job/recorder_value.h"

namespace dshang::job {

RecorderTree read_recorder_json(std::string_view text);

}  // namespace dshang::job
