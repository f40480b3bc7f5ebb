// The helper thread of a rank, named `dshang`, all signals blocked: keeps the connection to the monitor,
// writes stacks when asked, arms the Python side, and notices that no call of NCCL arrives.  It makes no CUDA
// call.
#pragma once

namespace dshang::interpose::helper {

// Once a waking; returns at once.
void start();

// At the end of a rank that has communicators: waits, at most a second, for its memory to be handed over to a
// monitor that is being started.  A job may be shorter than the start of its monitor, and what is handed over
// then is all that is ever known of it.  Async-signal-safe.
void wait_for_hand_over();

// A forked child has no helper.  Async-signal-safe.
void fall_asleep();

}  // namespace dshang::interpose::helper
