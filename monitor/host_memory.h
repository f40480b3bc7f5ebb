// Host memory of one rank process: what limits it, and whether the kernel's OOM killer was at work around it.
//
// The counter of its control group (cgroup v2 memory.events, v1 memory.oom_control: `oom_kill`, Linux 4.13
// and 4.19) counts members that any OOM killer ended, whoever ran out; where there is none that of the whole
// machine is taken
// (/proc/vmstat).  The kernel counts before it sends the signal (mm/oom_kill.c).  What cannot be read is
// unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/job/journal.h"

namespace dshang::monitor {

// The controller's folder of a process, from the text of /proc/<pid>/cgroup (cgroups(7)); a container may see
// only its own part of the tree, whose root then stands for it.  Empty: none.
std::string memory_group_of(const std::string& cgroup_text, const std::string& mounted = "/sys/fs/cgroup");

// `oom_kill` of memory.events, memory.oom_control or vmstat.
std::optional<std::uint64_t> oom_kills_in(const std::string& text);

// Resident bytes, from /proc/<pid>/statm; `path` is /proc/<pid>.
std::optional<std::uint64_t> read_resident(const std::string& path);

class HostMemory {
 public:
  HostMemory() = default;
  explicit HostMemory(std::int32_t pid) : HostMemory(pid, "/proc", "/sys/fs/cgroup") {}
  HostMemory(std::int32_t pid, const std::string& proc, const std::string& mounted);

  // Once in a while, so that a later count can be compared.
  void look(std::uint64_t now);

  // Of a process that ended by SIGKILL, or nobody knows how: says whether the OOM killer was at work in the
  // last seconds before, and the limit.
  void explain(job::Death& death) const;

 private:
  struct Seen {
    std::uint64_t time_ns, kills;
  };
  std::optional<std::uint64_t> kills() const;
  void find_limit(const std::string& proc, const std::string& folder);

  std::string counter_;     // path of the file with the counter
  std::vector<Seen> seen_;  // oldest first, a second apart; later counts are compared with the first
  std::uint64_t limit_ = 0;
  bool limit_is_of_group_ = false;
};

}  // namespace dshang::monitor
