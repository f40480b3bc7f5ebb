// Whether a thread of this process slept through a stretch of time, from /proc/self/task/<tid>.
//
// Threads: any; reads two small files.  Changes errno.
#pragma once

#include <cstdint>

namespace dshang::rank {

struct TaskState {
  char state = 0;               // as in stat: S, D, R, T, ...; 0 = not there, or unreadable
  std::uint64_t cpu_ticks = 0;  // user and system
  std::uint64_t switches = 0;   // voluntary and not; grows each time the thread goes to sleep
  bool asleep() const { return state == 'S' || state == 'D' || state == 'T' || state == 't'; }
  friend bool operator==(const TaskState& a, const TaskState& b) {
    return a.state == b.state && a.cpu_ticks == b.cpu_ticks && a.switches == b.switches;
  }
};

TaskState task_state(std::uint32_t tid);

// Whether this process has a thread `tid`.
bool is_own_task(std::uint32_t tid);

}  // namespace dshang::rank
