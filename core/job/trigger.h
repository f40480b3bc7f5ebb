// Looks at every new record once, as it arrives, and says when the detectors are worth running.  Constant
// work a record; the detectors themselves look at everything again and decide.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "core/job/job.h"

namespace dshang::job {

class Trigger {
 public:
  Trigger();
  ~Trigger();

  // After the records and the journal were brought up to `job.journal.now_ns`: true when the detectors should
  // run now. Differences settle first, so that what follows on them is recorded too.
  bool look(const Job& job);

  // True while something is being watched that only time decides (a stall), so that stacks and /proc are
  // wanted every second.
  bool suspicious() const;

  // True while a difference settles: worth looking again soon.
  bool settling() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dshang::job
