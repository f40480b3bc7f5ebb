// The stacks of all Python threads of this process, for a kStacks request (core/flight/wire.h).
#pragma once

#include <cstdint>

#include "core/flight/writer.h"

namespace dshang::rank {

// Writes one StackRecord a Python thread, threads that made calls or visits first, at most kStackEntries / 2.
// First with the GIL on a disposable thread (kWithGil), waiting at most 300 ms for it; else, without the GIL,
// the threads that are asleep and did not run between two equal reads (kRaw); kRefused with no frames for the
// others. Blocks up to 0.5 s: helper thread only, one caller at a time.  Sends no signal.  Returns the number
// of records.
unsigned write_stacks(const flight::Writer& writer, std::uint32_t request);

}  // namespace dshang::rank
