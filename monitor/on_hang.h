// What the user wants done at a hang, beside the report (DSHANG_ON_HANG, DSHANG_FAIL_ON).
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/job/report.h"
#include "monitor/attempt.h"
#include "monitor/job_output.h"

namespace dshang::monitor {

class OnHang {
 public:
  OnHang();

  // To be called at every round; acts once an attempt, when the report of the hang is written, or 5 s later
  // where the disk does not take it.
  //   fail           ends the job's ranks on this node: SIGTERM, 10 s later SIGKILL
  //   exec:<command> starts a shell command, with DSHANG_REPORT naming the directory of the report
  void round(const Attempt& attempt, const JobOutput& job_output, bool is_written, std::uint64_t now);
  void begin_attempt() { seen_ns_ = acted_ns_ = 0; }

 private:
  enum class Action { kReport, kFail, kExec };
  void act(const Attempt& attempt, const JobOutput& job_output);

  Action action_ = Action::kReport;
  std::string command_;
  job::Certainty certainty_ = job::Certainty::kProven;
  std::uint64_t seen_ns_ = 0, acted_ns_ = 0;  // 0 = not yet
  bool killed_ = false;
};

// Whether the report holds a hang that is still there and at least so certain.
bool has_hang(const job::Report& report, job::Certainty certainty);

}  // namespace dshang::monitor
