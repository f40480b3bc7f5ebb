// What the user wants done at a hang, beside the report (DSHANG_ON_HANG, DSHANG_FAIL_ON).
//
//   fail            the ranks of this node are told to fail: their communicators answer an error to whoever
//                   asks (ncclCommGetAsyncError), as torch's watchdog does every 100 ms.  Those that neither
//                   end nor go on get SIGTERM after DSHANG_FAIL_GRACE, and 10 s later SIGKILL
//   exec:<command>  a shell command is run (monitor/hang_command.h)
//
// A hang is a finding of that severity which is no consequence of another one, not resolved, and as certain
// as DSHANG_FAIL_ON says.  It is acted upon once, when a rank that it speaks of has been for
// DSHANG_FAIL_AFTER in a call that it was in already when the finding was made: a disagreement that NCCL got
// over ends no job, however long a later call takes.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/job/report.h"
#include "monitor/attempt.h"
#include "monitor/clock.h"
#include "monitor/job_output.h"

namespace dshang::monitor {

class OnHang {
 public:
  static constexpr unsigned kMostCommands = 16;    // an attempt
  static constexpr unsigned kCommandSeconds = 60;  // then a command is ended

  OnHang();

  // To be called at every round.  `is_written`: the report is on the disk; one that takes it no faster is
  // waited for only 5 s.
  void round(const Attempt& attempt, const JobOutput& job_output, bool is_written, std::uint64_t now);
  void begin_attempt();

 private:
  enum class Action { kReport, kFail, kExec };

  // One finding over time.
  struct Watched {
    double found = 0;  // with the communicator it tells findings apart; the explanation may grow
    std::optional<std::string> comm;
    std::string type;
    std::optional<std::uint64_t> call;
    std::uint64_t since_ns = 0;
    bool over = false;  // nobody waits any more
    bool acted = false;
  };
  // What a process had done when it was told to fail.
  struct Told {
    std::uint64_t key = 0, calls = 0;
    std::size_t comms = 0, ended_comms = 0;
    bool operator==(const Told&) const = default;
  };

  Watched& watched(const job::Finding& finding, std::uint64_t now);
  void act(const Attempt& attempt, const JobOutput& job_output, const job::Finding& finding,
           std::uint64_t now);
  void order_failure(const Attempt& attempt, const JobOutput& job_output, const job::Finding& finding,
                     std::uint64_t now);
  void end_the_stubborn(const Attempt& attempt, const JobOutput& job_output, std::uint64_t now);
  static Told told(const Attached& attached);

  Action action_ = Action::kReport;
  std::string command_;
  job::Certainty certainty_ = job::Certainty::kProven;
  std::uint64_t patience_ns_ = 0, grace_ns_ = 0;
  std::vector<Watched> watched_;
  std::vector<Told> told_;        // not ended by signal yet
  std::uint64_t ordered_ns_ = 0;  // 0 = not yet
  bool terminated_ = false;
  unsigned commands_ = 0;
};

// Whether a rank that the finding speaks of is still in a call, or in the creation of a communicator, that it
// began before `before_ns`.
bool somebody_waits(const job::Job& job, const job::Finding& finding, std::uint64_t before_ns);

}  // namespace dshang::monitor
