// The visits of a communicator's members, cut so that they can be compared from a common start.
#pragma once

#include <optional>
#include <vector>

#include "core/job/token.h"

namespace dshang::job {

struct Sequences {
  std::vector<Tokens> of;       // one a member, from the shared boundary on
  std::vector<Tokens> history;  // before it
  Tokens not_compared;          // one a kind of visit that was left out of both: see below
};

// First call of the member that was made after visit number n; nullopt if none.
std::optional<Seq> first_call_after(const Member& member, std::uint64_t visit_number);

// From the newest step on that all members have begun with their next calls at the same position; nullopt
// where there is none.
//
// Modules and side phases that the ranks visit each in their own way (every rank draws a task of its own) are
// no parting.  They are left out where they differed in an earlier step whose calls all the same agree: in
// number, and in all that is known of their purpose.
std::optional<Sequences> visit_sequences(const JobView& view, const CommView& comm);

// Whether something is known of both calls that differs: step, phase or module.
bool known_parts_differ(const Call& a, const Call& b);

}  // namespace dshang::job
