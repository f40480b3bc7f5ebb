// Where ranks of a communicator meet: a collective of all members, or an exchange in which each sends to and
// receives from most of the others in one group (tokens to experts).  Messages from one rank to the next are
// none: the stages of a pipeline wait for each other by design.
#pragma once

#include <cstdint>
#include <vector>

#include "detectors/registry.h"

namespace dshang::detect {

// One that a member came to: a collective, or a group of sends and receives.
struct Coming {
  const job::Call* call = nullptr;  // of a group the first
  std::uint64_t arrival_ns = 0;     // on its GPU, where that was marked, else of its host
  std::uint64_t done_ns = 0;
  bool is_done = false;
};

struct Meeting {
  std::vector<std::size_t> comings;  // by member: index into Meetings::comings; SIZE_MAX = not among them
  std::size_t ordinal = 0;           // the greatest of these: its place in the order of hosts
  std::size_t latest = 0;            // member that came last
  std::uint64_t first_ns = 0, second_ns = 0, last_ns = 0;  // arrivals: the first, the last but one, the last
};

// Those of one communicator that are over.
struct Meetings {
  const job::CommView* comm = nullptr;
  std::vector<std::vector<Coming>> comings;  // by member, in the order in which its host made them
  std::vector<Meeting> all;                  // in the order in which hosts came to them

  const Coming& latest(const Meeting& meeting) const {
    return comings[meeting.latest][meeting.comings[meeting.latest]];
  }
};

// Those to which all members came since `since_ns`.  The communicator must be complete and its ranks on one
// machine: clocks of different machines differ.
Meetings meetings_of(const JobView& view, const job::CommView& comm, std::uint64_t since_ns);

// A stretch of time.
struct Stretch {
  std::uint64_t begin_ns = 0, end_ns = 0;
};

// When each rank of the job (index into JobView::ranks) waited for others in these, in order and merged.
std::vector<std::vector<Stretch>> waits_in(const JobView& view, const std::vector<Meetings>& all);

// Nanoseconds of the stretch that lie in none of `waits`.
std::uint64_t outside(const Stretch& stretch, const std::vector<Stretch>& waits);

}  // namespace dshang::detect
