// Who comes last to the collectives, and by how much.
//
// The arrival of a rank is when its GPU reached the call, where that was marked, else when it made the call.
// Compared are ranks of one machine only: clocks of different machines differ.
#pragma once

#include <cstdint>
#include <vector>

#include "detectors/registry.h"

namespace dshang::detect {

// A step, or a second of a job that announces no steps.
struct Period {
  std::int64_t number = 0;
  std::vector<double>
      late;  // by index into JobView::ranks: seconds in which all others of a call waited for this rank alone
  double seconds = 0;     // from its first arrival to the next period's
  std::size_t calls = 0;  // completed collectives
};

struct Lateness {
  bool has_steps = false;
  std::vector<Period> periods;  // oldest first, without the newest, which may go on; at most kPeriodsLookedAt
};

inline constexpr std::size_t kPeriodsLookedAt = 32;

Lateness lateness_of(const JobView& view);

// Index of the rank that was waited for longest in this period, by at least `least` seconds; SIZE_MAX = none.
std::size_t latest(const Period& period, double least);

// "3.1 steps per second", "40 calls per second"; "" where nothing completed.
std::string pace_text(const Lateness& lateness);

}  // namespace dshang::detect
