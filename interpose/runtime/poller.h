// The thread that asks the GPU how far it is: `dshang-poll`.
//
// Driver API only, in relaxed capture mode, so that it never spoils somebody's capture; it may hang in the
// driver, and then header.poll_stuck_ns tells since when.  Every DSHANG_GPU_POLL_MS it looks at the oldest
// unfinished call of each stream; calls of one stream finish in order.
#pragma once

namespace dshang::interpose::poller {

// Starts the thread if there is none yet.  Any thread.
void start();

// The process is exiting: no further driver call.  Waits at most 10 ms for one that runs.
void stop();
bool is_stopping();

// A forked child has no poller.  Async-signal-safe.
void fall_asleep();

// For tests: one round as the thread makes it, and a start() that starts nothing.
void round();
void pretend_started();

}  // namespace dshang::interpose::poller
