// Lines that differ by rank for a while, and mean the same.
#pragma once

#include "core/job/token.h"

namespace dshang::job {

// Whether the lines that differ at k are two ways to the same thing (a dummy branch taken for the first
// time): behind k the members go on alike, call by call, rather than shifted by a call that one of them made
// more.
bool is_lone_line(const JobView& view, const CommView& comm, Seq k, Seq visible, const PlaceClasses& places);

}  // namespace dshang::job
