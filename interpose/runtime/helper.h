// The helper thread of a rank, named `dshang`, all signals blocked: keeps the connection to the monitor,
// writes stacks when asked, arms the Python side, and notices that no call of NCCL arrives.  It makes no CUDA
// call.
#pragma once

namespace dshang::interpose::helper {

// Once a waking; returns at once.
void start();

// Waits, at most a second, for the memory of a rank that has communicators to be handed over to a monitor that
// is being started.  Async-signal-safe.  Called twice in its life:
// - with its first communicator: a rank that is killed is not asked, and what was not handed over by then is
//   lost.  Making a communicator of several nodes takes longer than this.
// - at its end: a job may be shorter than the start of its monitor, and what is handed over then is all that is
//   ever known of it.
void wait_for_hand_over();

// A forked child has no helper.  Async-signal-safe.
void fall_asleep();

}  // namespace dshang::interpose::helper
