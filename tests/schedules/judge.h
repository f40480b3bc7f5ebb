// What should have been said of a job with a mistake, and whether it was.
#pragma once

#include <optional>
#include <string>

#include "faults.h"
#include "watch.h"

namespace dshang::schedules {

struct Verdict {
  std::string told;  // class of the first finding that stands; "nothing", "nothing to see"
  bool class_right = false;
  bool undecidable = false;  // of the suspects nothing behind the first different call is recorded, and no purpose
  std::optional<bool> suspects_right;  // where a majority exists
  bool suspects_wrong_in_tie = false;  // somebody healthy was named where none exists
  std::optional<bool> origin_right;    // where purposes part, and call sites or modules are recorded
  bool agreed_too_far = false;         // `agreed_until` reaches beyond where purposes part
  std::string expected_origin;         // for the reader
  std::string said_otherwise;          // another class that was said at some moment, as a hang
};

Verdict judge(const Job& job, const History& history, const Fault& fault, const Watched& watched);

}  // namespace dshang::schedules
