// Who comes last to where the ranks of a communicator meet (meetings.h), and by how much.
//
// The arrival of a rank is when its GPU reached the call, where that was marked, else when it made the call.
// Compared are ranks of one machine only: clocks of different machines differ.  A rank is not late while it
// waits for others itself, in whatever communicator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "detectors/meetings.h"
#include "detectors/registry.h"

namespace dshang::detect {

// A step, or a stretch of equal length of a job that announces no steps.
struct Period {
  std::int64_t number = 0;
  std::vector<double> late;  // by member: seconds for which all others of a call waited for this one alone
  double seconds = 0;        // from its first arrival to the next period's
  std::size_t calls = 0;     // completed meetings
  // Most ranks waited with their hosts at some call of it.  Else they run ahead, and a rank that is always
  // late by as much holds nobody up.
  bool held_up = false;
};

struct Lateness {
  const job::CommView* comm = nullptr;
  bool has_steps = false;
  unsigned period_seconds = 1;  // without steps
  std::vector<Period> periods;  // oldest first, without the newest, which may go on; at most kPeriodsLookedAt
};

inline constexpr std::size_t kPeriodsLookedAt = 32;

// Where the ranks met, gathered once for periods of several lengths.
struct Gathered {
  bool has_steps = false;
  std::vector<Meetings> all;                // by communicator that can be compared
  std::vector<std::vector<Stretch>> waits;  // by index into JobView::ranks
};

// Enough for periods of up to `longest` seconds, where there are no steps.
Gathered gather(const JobView& view, unsigned longest = 1);

// Of each communicator that has periods, in the view's order.  Without steps the periods are `seconds` long.
std::vector<Lateness> lateness_of(const Gathered& gathered, unsigned seconds = 1);

// Index of the member that was waited for longest in this period, by at least `least` seconds; SIZE_MAX =
// none.
std::size_t latest(const Period& period, double least);

// "3.1 steps per second", "40 calls per second"; "" where nothing completed.
std::string pace_text(const Lateness& lateness);

}  // namespace dshang::detect
