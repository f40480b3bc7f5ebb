// Leaves the process tree of the rank that started the monitor: a launcher ends every child of a failing
// rank.
#pragma once

#include <sys/types.h>

namespace dshang::monitor {

// The calling process ends with status 0 and its grandchild goes on: in a session of its own, with no
// terminal, with standard streams on /dev/null, with `keep` as the only other descriptor, on all CPUs, named
// "dshang-monitor", indifferent to SIGHUP, SIGINT, SIGTERM and their like.  Returns false when no process
// could be made.
bool become_daemon(int keep);

// The same without leaving the process (`--foreground`): only the name and the signals.
void stay_in_foreground();

// The file mode mask that this program was started with; its own files are for the user alone.
mode_t mask_at_start();

}  // namespace dshang::monitor
