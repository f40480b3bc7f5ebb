// Reads what the kernel says about a process (proc(5)).  Everything unreadable is absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dshang::monitor {

struct ProcStat {
  char state = '?';
  std::int32_t parent = 0;
  std::uint64_t cpu_ticks = 0;            // utime + stime
  std::uint64_t reaped_ticks = 0;         // cutime + cstime
  std::uint64_t start_ticks = 0;          // since boot
  std::optional<std::int32_t> exit_code;  // wait status; the kernel writes 0 where it may not be read
};

struct ProcIo {
  std::uint64_t read = 0, written = 0;  // rchar, wchar: bytes that the program asked for
};

// `path` is /proc/<pid> or /proc/<pid>/task/<tid>, without a slash at its end.
std::string process_path(std::int32_t pid);
std::string thread_path(std::int32_t pid, std::int32_t tid);
std::optional<ProcStat> parse_stat(const std::string& text);
std::optional<ProcStat> read_stat(const std::string& path);
std::optional<ProcIo> read_io(const std::string& path);
std::string read_wchan(const std::string& path);  // "" unknown, or running
std::string read_syscall(
    const std::string& path);  // name of the system call the thread is in, "" unknown or none

// All processes with their parents.  One pass over /proc, so it is made once a round and not once a rank.
class ProcessTable {
 public:
  void refresh();
  void clear() { links_.clear(); }
  // Children of `pid` and theirs.
  std::vector<std::int32_t> descendants(std::int32_t pid) const;

 private:
  struct Link {
    std::int32_t parent, child;
  };
  std::vector<Link> links_;  // by parent
};

double seconds_of_ticks(std::uint64_t ticks);

}  // namespace dshang::monitor
