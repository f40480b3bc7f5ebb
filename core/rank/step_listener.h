// Who wants to know, inside this process, that a training step begins: the memory ledger closes the step before it.
//
// begin_step() (context.h) calls notify_step() before it announces the new step, on the thread that begins it.
// The listener is set once, when the process wakes, and cleared in a forked child.
#pragma once

#include <atomic>
#include <cstdint>

namespace dshang::rank {

using StepListener = void (*)(std::int64_t new_step);

inline std::atomic<StepListener> step_listener{nullptr};

inline void notify_step(std::int64_t new_step) {
  if (StepListener listener = step_listener.load(std::memory_order_acquire)) listener(new_step);
}

}  // namespace dshang::rank
