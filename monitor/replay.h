// A job as its files tell it: flight files and journal, so that the same detectors say the same (contract
// section 2).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/job/job.h"
#include "core/job/report.h"

namespace dshang::monitor {

struct Replay {
  std::unique_ptr<job::Job> job;
  std::vector<std::uint64_t> moments;  // at which the monitor had news, and the job's end; oldest first
  // The last of the moments where no monitor looked at it: a log has no end, and this is the newest time in
  // what was recorded.  Else 0.
  std::uint64_t unseen_ns = 0;
  std::vector<std::string> remarks;  // what could not be read, for not_checked
};

// `directories`: each DSHANG_DIR, one of its attempt-<n>, or a folder of flight files; those of several nodes
// make one job.  Or each a folder of PyTorch Flight Recorder dumps (recorder_files.h).  Where the job still runs, or ended without its monitor, the node-local copy is read if it is
// on this machine. Throws std::runtime_error when there is nothing to read.
Replay replay(const std::vector<std::string>& directories);

// The report as it was when the job ended: the detectors look at each moment at which there was news, because
// ranks that waited for each other may have been ended together afterwards.  `history` then knows what was
// found.
job::Report repeat(Replay& replay, job::FindingHistory* history);

}  // namespace dshang::monitor
