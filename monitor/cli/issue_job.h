// A job's files, as `dshang issue` tells them.
#pragma once

#include <optional>
#include <string>

#include "issue/job.h"

namespace dshang::monitor::cli {

// Throws std::runtime_error where `directory` holds no job that can be read (monitor/replay.h).
issue::RecordedJob recorded_job(const std::string& directory);

// DSHANG_DIR where it is set and holds a job, else the newest ./dshang-*; "" none.
std::string newest_job();

}  // namespace dshang::monitor::cli
