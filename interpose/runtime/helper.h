// The helper thread of a rank, named `dshang`, all signals blocked: keeps the connection to the monitor,
// writes stacks when asked, arms the Python side, and notices that no call of NCCL arrives.  It makes no CUDA
// call.
#pragma once

namespace dshang::interpose::helper {

// Once a waking; returns at once.
void start();

// A forked child has no helper.  Async-signal-safe.
void fall_asleep();

}  // namespace dshang::interpose::helper
