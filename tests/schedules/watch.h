// Gives a job's records to the analysis as the monitor does while it runs, and keeps what is said.
#pragma once

#include <string>
#include <vector>

#include "core/job/report.h"
#include "recorder.h"

namespace dshang::schedules {

struct Said {
  double at;  // seconds
  std::string type;
  dshang::job::Severity severity;
};

struct Watched {
  dshang::job::Report report;           // the last one
  std::vector<Said> said;               // each finding when it was new
  bool hangs = false;                   // somebody does not end
  bool shown = false;                   // what is recorded shows somebody waiting at the end
  double until = 0;                     // seconds
  std::vector<std::string> comm_names;  // by Job::comms, as reports name them
  std::size_t analyses = 0;
};

// `recorder` holds the last records afterwards.
Watched watch(const Job& job, const History& history, const std::vector<Mishap>& mishaps, Recorder& recorder,
              Rng& rng);

// When the last thing happened; kNever times aside.
double last_event(const History& history);

}  // namespace dshang::schedules
