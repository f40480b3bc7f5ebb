// Flight Recorder dumps as a job: the same records that flight memory would give, as far as dumps have them.
//
// Numbers of calls are the dump's collective_seq_id, unless several calls share one (a coalesced group): then
// they are counted on from the first id that all ranks still have. Times are CLOCK_REALTIME, as in the dumps.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/job/finding.h"
#include "core/job/job.h"
#include "core/job/recorder_dump.h"

namespace dshang::job {

// Key of the fact that says how many collectives a rank is known to have finished on a communicator, where
// calls do not show it: a dump may have only those that are not finished.
std::string finished_fact(std::uint64_t comm_id);

class RecorderImport {
 public:
  RecorderImport();
  ~RecorderImport();

  // One rank's dump; the bytes it was read from must live until this returns.
  void add(Rank rank, const RecorderDump& dump);

  // When the dumps were written, in CLOCK_REALTIME; 0 = not known.  Then the job as of that moment, or of the
  // newest one that the dumps speak of; `remarks` gets what cannot be known from dumps, for not_checked.
  std::unique_ptr<Job> finish(std::uint64_t written_ns, std::vector<std::string>* remarks);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dshang::job
