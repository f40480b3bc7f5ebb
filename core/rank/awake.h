// The flight memory of this process, while it is awake.
//
// The C API (dshang.h) and the probe have no writer of their own; they find it here.  Until the process wakes
// they remember phases, modules, the newest step and notes in static memory (context.h), so that nothing said
// early is lost.
//
// Threads: awake() by any thread; wake() and fall_asleep() by one thread at a time.
#pragma once

#include "core/flight/writer.h"

namespace dshang::rank {

// Empty while the process is inert.
flight::Writer awake();

// From now on everything is recorded in `writer`; what was remembered is written there.  Called once per
// waking, before the first record, by the thread that wakes the process.
void wake(const flight::Writer& writer);

// A forked child is inert again: forgets the parent's memory, names and stacks.  Async-signal-safe.
void fall_asleep();

// Grows at every wake(): ids of an earlier flight memory are void.
std::uint32_t waking();

}  // namespace dshang::rank
