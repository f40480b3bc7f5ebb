// A parent for the monitor's processes where orphans become children of this process.
//
// That is so for the first process of a pid namespace (a container that runs the training program itself) and
// for a child subreaper.  A host that waits for all its children would then wait for the monitor, which ends
// after it.  The keeper is a child that no plain wait() sees, as it has no exit signal, and adopts in its place.
//
// An exec would give it one, so it stays in this process's memory: on a stack of its own, with system calls
// alone, in a process group of its own, all signals blocked, killed with the helper thread at the latest.
//
// Threads: the helper thread; forget() in a forked child.
#pragma once

namespace dshang::interpose::keeper {

// Whether the orphans among this process's descendants become its children.
bool is_needed();

// Runs body(argument) in a new keeper and returns when it has returned; what body started is kept from
// then on.  Returns 0 or an errno.
int run(int (*body)(void*), void* argument);

// Lets go of keepers that have ended: they end with the last process that they keep.
void tidy();

// A forked child has none.  Async-signal-safe.
void forget();

}  // namespace dshang::interpose::keeper
