// Time-out lines of torch's watchdog, paired over ranks.
//
// Each rank names the oldest call of a process group that it could not finish.  Sequence numbers count within
// a group; the group stands in the line's prefix, or in the line that follows ("[PG ID 0 PG GUID
// 0(default_pg) Rank 1] Exception … at work: 808").
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "explain/line.h"

namespace dshang::explain {

class Watchdog {
 public:
  struct Call {
    long seq = -1;
    std::string op, size;  // "ALLREDUCE", "1 -> 1"
    auto operator<=>(const Call&) const = default;
    std::string text() const;  // "ALLREDUCE #54 (1 -> 1)"
  };
  struct Report {
    Place place;
    int rank = -1;
    Call call;
    std::string group;  // "" unknown
    long time_s = -1;   // of the day
    long timeout_ms = -1, enqueued = -1, completed = -1;
  };

  void take_timeout(const Line& line, std::size_t at);
  void take_group(const Line& line, std::size_t at);  // at "last enqueued"

  const std::vector<Report>& reports() const { return reports_; }

  struct Side {
    Call call;
    std::vector<int> ranks;  // ascending
  };
  // What the ranks of the first group that timed out wait in, the larger number of ranks first.  A rank that
  // timed out a whole time-out later came late, when the others were gone: it is in none.
  std::vector<Side> sides() const;
  Place first() const { return reports_.front().place; }
  // Whether the group is all of the job, as far as it is known.
  bool whole_job() const;

 private:
  std::vector<Report> reports_;
};

}  // namespace dshang::explain
