// Calls that the user's own line makes through torch.distributed: gathers of metrics and the like, which no module makes.
#pragma once

#include "detectors/registry.h"

namespace dshang::detect {

// Whether nothing but the functions of torch.distributed or deepspeed.comm stands between the user's line and the call.
// False where the call site does not tell.
bool is_own_call(const JobView& view, const job::Call& call);

}  // namespace dshang::detect
