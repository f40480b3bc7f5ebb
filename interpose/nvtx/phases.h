// Which phase a range stands for.  Threads: any.
#pragma once

#include "core/rank/ranges.h"

namespace dshang::nvtx {

using rank::RangeDomain;

// By the name that DeepSpeed gives its ranges, a function's qualified name; null = none.  Of names in wide
// characters those of ASCII letters are understood.
const char* phase_of(RangeDomain domain, const char* name);
const char* phase_of(RangeDomain domain, const wchar_t* name);

}  // namespace dshang::nvtx
