// Starts the monitor of this node: `dshang monitor --job <16 hex digits>`.
//
// The program is DSHANG_MONITOR's, else the one beside libdshang.so.  Started by posix_spawn, never by fork:
// a fork of a large process stalls it and runs foreign handlers.  It is no child of this process: its end
// sends no SIGCHLD here and no wait() of the host meets it (keeper.h: also where this process adopts
// orphans). The job's address (core/flight/wire.h) is taken for it before it starts, by the process in
// between: a rank may hand over and be gone before the monitor runs.  This process never holds that socket,
// so no fork() keeps it open.  Where a keeper starts the monitor, which shares this process's descriptors,
// the monitor takes the address itself. It works in the directory that this process was started in, where
// relative paths in its environment begin: the program may have gone elsewhere before it wakes.
//
// Threads: the helper thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dshang::interpose {

// Path of the program, found once; null = there is none.
const char* monitor_program();

// Starts it with the given environment, unless the job's address is taken by now.  0 = started, or there is
// one (whether it lives is seen at its socket); else an errno.
int start_monitor(const char* program, std::uint64_t job, char* const* environment);

}  // namespace dshang::interpose
