// How ranks go on, by their own history of calls over all communicators, sends and receives included.
#pragma once

#include "detectors/registry.h"
#include "detectors/waits.h"

namespace dshang::detect {

enum class Goes { kUnknown, kAsBefore, kOtherwise };

struct Habit {
  Goes goes = Goes::kUnknown;
  const job::Call* expected = nullptr;  // what stood there before; null: unknown
};

// Of the oldest call that the rank waits in.
Habit habit_of(const JobView& view, const job::RankView& rank);

// Whether the rank that is waited for has always made its side of such a send or receive where it now waits
// in something else.
bool left_out_message(const JobView& view, const Wait& wait);

// Whether ranks wait for each other in a ring because of such a message.
bool waits_for_left_out_message(const JobView& view);

}  // namespace dshang::detect
