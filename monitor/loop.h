// The monitor of one job on one node: from the first rank that registers to the last one that ends.
//
// Threads: one (disks have the Worker).
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "monitor/attempt.h"
#include "monitor/attempt_output.h"
#include "monitor/job_output.h"
#include "monitor/metrics/server.h"
#include "monitor/on_hang.h"
#include "monitor/parts.h"
#include "monitor/server.h"
#include "monitor/settings.h"
#include "monitor/worker.h"

struct pollfd;

namespace dshang::monitor {

class Loop {
 public:
  // `server` listens already.  `warnings` are said on the job's stderr as soon as there is one.
  Loop(Settings settings, Server server, std::vector<std::string> warnings);

  // Returns when the job has ended and its files are written, or when no rank came within 10 s.
  void run();

 private:
  // A connection whose greeting has not come yet.
  struct Guest {
    Connection connection;
    std::uint64_t since_ns;
  };
  // An attempt that is over; some of its processes may still live.
  struct Past {
    std::unique_ptr<Attempt> attempt;
  };

  void wait(std::uint64_t until);
  void accept_guests(std::uint64_t now);
  void hear_guests(std::uint64_t now);
  void hear_ranks();
  void find_the_dead();
  void bury(Attempt& attempt, bool current);
  void enter(Connection connection, Registration registration);
  // `first`: of this monitor; then it may be one that another monitor began.
  void begin_attempt(bool first);
  void end_attempt();
  void round(std::uint64_t now);
  void analyse(std::uint64_t now, bool anyway);
  // One part of a round; Parts::run(), and a short rest where it failed.
  template <typename Part>
  void go(const char* name, Part part);
  void say_trouble();
  void say_blind();
  void finish();
  bool anybody_alive() const;
  bool adopted_by_a_rank() const;
  bool others_may_come(std::uint64_t now) const;

  Settings settings_;
  Server server_;
  std::vector<std::string> warnings_;
  JobOutput job_output_;
  OnHang on_hang_;
  MetricsServer metrics_;
  Parts parts_;
  Worker* worker_;  // never destroyed: it may be stuck in a file system for ever
  std::list<Guest> guests_;
  std::unique_ptr<Attempt> attempt_;
  std::unique_ptr<AttemptOutput> output_;
  std::vector<Past> past_;
  ProcessTable processes_;
  std::uint64_t started_ns_ = 0, next_round_ns_ = 0, next_sample_ns_ = 0, next_analysis_ns_ = 0;
  bool analysis_is_due_ = false, said_trouble_ = false, said_blind_ = false, said_warnings_ = false;
};

}  // namespace dshang::monitor
