// Folders of PyTorch Flight Recorder dumps, one file a rank, whose names end with the rank: _dump_3,
// nccl_trace_rank_3, rank_3.json.
#pragma once

#include <string>
#include <vector>

#include "core/job/job.h"
#include "monitor/replay.h"

namespace dshang::monitor {

// Whether this folder has such dumps and no flight files.
bool holds_recorder_dumps(const std::string& directory);

// The job that the dumps of all these folders tell of.  Throws std::runtime_error when none can be read, or
// two are of the same rank.
Replay replay_recorder_dumps(const std::vector<std::string>& directories);

// Writes a dump for each rank of the job into a folder that is made, or is empty: _dump_<rank>, as of the
// job's journal.  Returns what the analysers of others cannot be told, one line each. Throws
// std::runtime_error.
std::vector<std::string> write_recorder_dumps(const job::Job& job, const std::string& directory);

}  // namespace dshang::monitor
