// Exceptions that a suspect raised shortly before it parted from the others: mostly one that the program
// caught on one rank only.
#pragma once

#include <optional>
#include <string>

#include "detectors/registry.h"

namespace dshang::detect {

struct Raised {
  Rank rank = -1;
  const job::Exception* exception = nullptr;
  bool caught = false;  // the rank made calls or visits after it that are no unwinding and no teardown
  double before = 0;    // seconds from it to what the rank did next; 0 where it has done nothing since
};

// The newest exception of the suspects (in a tie: of the rank told of; where all are silent, of those
// missing) in the step in which they parted, at the latest when they parted; without steps, since the last
// call in which all agree.  One that the rank raised in the same place before, or that the others raised in
// that step too, is no reason to part and is left out.
std::optional<Raised> raised_before(const JobView& view, const Divergence& d);

// Evidence, headline ("after RuntimeError ("NaN") at train.py:12 forward, which the program caught, ...") and
// first remedy; what the catalogue of known errors says of it.
void tell_raised(const JobView& view, const Raised& raised, Explanation& explanation);

}  // namespace dshang::detect
