// A job that may still run, looked at again and again from its files, for `dshang top`.
//
// What is seen is as old as the copies that the monitor made of flight memory (DSHANG_PERSIST): all ranks as
// they were when the oldest of these was made.
#pragma once

#include <string>

#include "monitor/top/rank_table.h"

namespace dshang::monitor {

struct JobLook {
  RankTable table;
  std::string verdict;  // of the newest report; "" = none was written, nothing was found so far
  std::string finding;  // its first that is not resolved: "[module-skipped] rank 1 left out ..."
};

class LiveJob {
 public:
  // `name`: DSHANG_DIR of the job, or the job's name as it stands in the line that is printed at its start.
  // Throws std::runtime_error that says what is wrong and which jobs run here.
  explicit LiveJob(const std::string& name);

  const std::string& directory() const { return directory_; }

  // Throws std::runtime_error when its files cannot be read (any more).
  JobLook look() const;

 private:
  std::string directory_;
};

}  // namespace dshang::monitor
