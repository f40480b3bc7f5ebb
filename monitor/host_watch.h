// Looks at one rank process from outside, again and again: CPU time and I/O of what works for the job in it, and its
// host memory.
//
// Counted are the threads that made calls or visits and the child processes; where no thread has made any
// yet, the process without dshang's own threads.  What its other threads do is told apart: it may be what
// those wait for.  The sums never fall: a thread or child that ends keeps what it had.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/job/journal.h"
#include "core/job/records.h"
#include "monitor/host_memory.h"
#include "monitor/proc.h"

namespace dshang::monitor {

// A sum over parts that come and go.
class GrowingSum {
 public:
  // Brings a part up to `value`.  A part seen for the first time counts from `value` on when it is `old`,
  // else from 0.
  void part(std::uint64_t key, std::uint64_t value, bool old);
  void add(std::uint64_t amount) { total_ += amount; }
  // Ends a round; returns what the parts had that were not brought up to date in it.
  std::uint64_t forget_others();
  std::uint64_t total() const { return total_; }

 private:
  struct Part {
    std::uint64_t value;
    bool seen;
  };
  std::map<std::uint64_t, Part> parts_;
  std::uint64_t total_ = 0;
};

class HostWatch {
 public:
  explicit HostWatch(std::int32_t pid) : pid_(pid), memory_(pid) {}

  // `threads` is what the process has recorded of its threads.
  job::HostSample look(const std::vector<job::Thread>& threads, const ProcessTable& processes);

  const HostMemory& memory() const { return memory_; }

 private:
  bool look_at_threads(const std::vector<job::Thread>& threads);
  void look_at_others(const ProcStat& process, const std::vector<job::Thread>& threads);
  void look_at_children(const ProcStat& process, const ProcessTable& processes);
  void count_io(std::uint64_t key, const std::string& path, bool old);

  std::int32_t pid_;
  HostMemory memory_;
  bool cpu_known_ = false, io_known_ = false;
  bool runnable_ = false;              // a thread that makes calls, or a child
  std::uint64_t last_look_ticks_ = 0;  // CLOCK_BOOTTIME in ticks; 0 = never
  std::uint64_t last_reaped_ = 0;
  GrowingSum cpu_process_, cpu_own_, cpu_threads_, cpu_children_, read_, written_;
};

}  // namespace dshang::monitor
