// Everything known of one job on one node (or, later, of all nodes): records of the rank processes and the
// journal.
//
// Threads: one at a time.
#pragma once

#include <memory>
#include <vector>

#include "core/job/journal.h"
#include "core/job/params.h"
#include "core/job/records.h"

namespace dshang::job {

struct Process {
  RankRecords records;
  ProcessJournal journal;
};

struct Job {
  Names names;
  Params params;
  Journal journal;                                  // `processes` stays empty here: each Process has its own
  std::vector<std::unique_ptr<Process>> processes;  // in the order of attaching
};

}  // namespace dshang::job
