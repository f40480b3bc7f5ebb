// Whether a rank advances on the host: its CPU time, I/O and Python stacks over a window, as contract section
// 5 judges `host-stall`, and the CUDA graphs that it replays.  Unreadable is unknown, never "no progress".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "detectors/registry.h"

namespace dshang::detect {

inline constexpr double kCpuShare = 0.05;             // of a core, over the window
inline constexpr std::uint64_t kIoBytes = 64 * 1024;  // over the window

struct Progress {
  bool known = false;
  double window = 0;        // seconds
  double cpu_seconds = -1;  // -1 = unreadable
  double other_cpu = -1;    // of other threads of the process: it may wait for them; -1 = unreadable
  std::int64_t read = -1, written = -1;
  std::uint64_t graph_launches = 0;  // CUDA graphs replayed: calls of NCCL that nothing records
  bool stack_moved = false;
  bool runnable = false;    // it wants a core, and gets none on a machine that has too much to do
  std::string innermost;    // user function of the newest stack: "a15.py:55 next_batch"
  std::string sleeping_in;  // wchan or system call
  std::vector<std::string> frames;
  bool others_work() const { return other_cpu >= kCpuShare * window; }
  bool advances() const {
    return cpu_seconds >= kCpuShare * window || read + written >= static_cast<std::int64_t>(kIoBytes) ||
           stack_moved || runnable || graph_launches > 0;
  }
};

// Over the last `window` seconds of what was seen, from `since_ns` on: what the rank did before says nothing
// of the wait.
Progress progress_of(const JobView& view, const job::RankView& rank, double window,
                     std::uint64_t since_ns = 0);

std::vector<std::string> evidence_of_progress(const Progress& p);

// What to do about a rank that the others wait for, by where it is.
std::vector<std::string> fixes_of_progress(const Progress& p, bool advances);

double seconds_between(std::uint64_t from_ns, std::uint64_t to_ns);  // 0 where `to` is not later

}  // namespace dshang::detect
