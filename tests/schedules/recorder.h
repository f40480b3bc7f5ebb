// What would be recorded of a job's history, as the monitor finds it at each moment.
#pragma once

#include <cstdint>
#include <vector>

#include "core/job/job.h"
#include "machine.h"

namespace dshang::schedules {

inline constexpr std::uint64_t kStartNs = 1'000'000'000'000;  // of the machine's clock at the job's time 0
inline std::uint64_t ns(double seconds) { return kStartNs + static_cast<std::uint64_t>(seconds * 1e9); }

class Recorder {
 public:
  Recorder(const Job& job, const History& history, const std::vector<Mishap>& mishaps, Rng& rng);

  // Brings the records up to `now`, in seconds; moments come in order.
  void look(double now);
  // One look at /proc, and answers to requests for stacks.
  void sample(double now);
  void stack_of(std::size_t process, double now);
  dshang::job::Job& job() { return recorded_; }
  bool everybody_has_ended(double now) const;

 private:
  struct Cursor {
    std::size_t call = 0, visit = 0, depth = 0, inside = 0;
    std::vector<std::uint64_t> open;              // numbers in the ring of calls that may still change
    std::vector<double> seen_started, seen_done;  // by call: when the poller sees it
    double host_ends = kNever, poller_ends = kNever;
    double ended = kNever;  // the process
    dshang::job::Death death;
  };
  void begin(std::size_t rank);
  void add_call(std::size_t rank, std::size_t index, double now);
  void refresh(std::size_t rank, std::size_t index, double now);
  void add_visit(std::size_t rank, const VisitTimes& visit);
  void threads(std::size_t rank, double now);
  double poller(double time, double period) { return time == kNever ? kNever : time + rng_.unit() * period; }

  const Job& job_;
  const History& history_;
  const std::vector<Mishap>& mishaps_;
  Rng& rng_;
  dshang::job::Job recorded_;
  std::vector<Cursor> cursors_;
  std::vector<dshang::job::SiteId> sites_;
  std::vector<dshang::job::NameId> names_;
  std::vector<std::uint64_t> calls_kept_;  // of all records of a rank, the first in its ring
};

}  // namespace dshang::schedules
