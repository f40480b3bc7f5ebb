// Whose arguments are other than they have always been at this line.
#pragma once

#include <vector>

#include "core/job/divergence.h"

namespace dshang::job {

// All members make call `k` from one line with one operation.  Where that line has had the same arguments in
// each earlier call of every member, twice at least, and some still have them: those who have not.  Else
// empty.
std::vector<Rank> with_new_arguments(const JobView& view, const CommView& comm, Seq k);

}  // namespace dshang::job
