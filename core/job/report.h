// The report: findings with everything around them, as JSON (contract section 4) and as text.
#pragma once

#include <string>
#include <vector>

#include "core/job/finding.h"
#include "core/job/job.h"

namespace dshang::job {

// What one run of the detectors says.
struct Analysis {
  std::vector<Finding> findings;  // most important first
  std::vector<std::string> not_checked;
  std::vector<std::size_t> wants_stacks;  // processes (index into Job::processes) whose stacks would help
};

struct Report {
  std::int32_t world_size = 0, nodes = 1;
  std::string dir, started;  // started: ISO 8601
  double as_of = 0;          // seconds since job start
  std::vector<Finding> findings;
  std::vector<std::string> not_checked;
};

// Remembers findings over the life of a job: keeps `at` of the first time, marks what ended as resolved.
class FindingHistory {
 public:
  // The report after a new analysis; `has_news` is true when a finding is new, changed its class or severity,
  // or was resolved, so that it is worth a block of text.
  Report update(const Job& job, Analysis analysis, bool* has_news);

 private:
  std::vector<Finding> known_;
};

std::string verdict_of(const Report& report);
std::string json_of(const Report& report);  // report.json, ends with a newline
std::string text_of(const Report& report);  // report.txt
// The block for the job's stderr, of what is news: at most 25 lines and `limit` bytes, the first line is the
// whole story, the last one names the file (none with an empty Report::dir).  Empty without news.
std::string block_of(const Report& report, std::size_t limit = 4096);

}  // namespace dshang::job
