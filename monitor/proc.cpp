#include "monitor/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "monitor/descriptor.h"

namespace dshang::monitor {
namespace {

std::optional<std::string> read_small(const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  char text[4096];
  ssize_t n = read(file.get(), text, sizeof text);
  if (n < 0) return std::nullopt;
  return std::string(text, static_cast<std::size_t>(n));
}

std::optional<std::uint64_t> number_after(const std::string& text, const char* key) {
  std::size_t at = text.find(key);
  if (at == std::string::npos) return std::nullopt;
  return std::strtoull(text.c_str() + at + std::strlen(key), nullptr, 10);
}

struct SyscallName {
  long number;
  const char* name;
};

// Calls in which a stuck program is found; anything else is named by its number.
constexpr SyscallName kSyscalls[] = {
#ifdef SYS_poll
    {SYS_poll, "poll"},
    {SYS_select, "select"},
    {SYS_epoll_wait, "epoll_wait"},
    {SYS_open, "open"},
    {SYS_stat, "stat"},
    {SYS_unlink, "unlink"},
    {SYS_rename, "rename"},
    {SYS_mkdir, "mkdir"},
    {SYS_pause, "pause"},
#endif
    {SYS_futex, "futex"},
    {SYS_read, "read"},
    {SYS_write, "write"},
    {SYS_pread64, "pread64"},
    {SYS_pwrite64, "pwrite64"},
    {SYS_readv, "readv"},
    {SYS_writev, "writev"},
    {SYS_ppoll, "ppoll"},
    {SYS_pselect6, "pselect6"},
    {SYS_epoll_pwait, "epoll_pwait"},
    {SYS_nanosleep, "nanosleep"},
    {SYS_clock_nanosleep, "clock_nanosleep"},
    {SYS_recvfrom, "recvfrom"},
    {SYS_recvmsg, "recvmsg"},
    {SYS_sendto, "sendto"},
    {SYS_sendmsg, "sendmsg"},
    {SYS_connect, "connect"},
    {SYS_accept, "accept"},
    {SYS_accept4, "accept4"},
    {SYS_wait4, "wait4"},
    {SYS_waitid, "waitid"},
    {SYS_flock, "flock"},
    {SYS_fcntl, "fcntl"},
    {SYS_openat, "openat"},
    {SYS_newfstatat, "newfstatat"},
    {SYS_statx, "statx"},
    {SYS_unlinkat, "unlinkat"},
    {SYS_fsync, "fsync"},
    {SYS_fdatasync, "fdatasync"},
    {SYS_sync, "sync"},
    {SYS_getdents64, "getdents64"},
    {SYS_ioctl, "ioctl"},
    {SYS_mmap, "mmap"},
    {SYS_munmap, "munmap"},
    {SYS_madvise, "madvise"},
    {SYS_sched_yield, "sched_yield"},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
    {SYS_rt_sigsuspend, "rt_sigsuspend"},
};

}  // namespace

std::string process_path(std::int32_t pid) { return "/proc/" + std::to_string(pid); }

std::string thread_path(std::int32_t pid, std::int32_t tid) {
  return process_path(pid) + "/task/" + std::to_string(tid);
}

std::optional<ProcStat> parse_stat(const std::string& text) {
  // Fields are counted from 1; the second, the command's name, may hold spaces and brackets.
  std::size_t bracket = text.rfind(')');
  if (bracket == std::string::npos || bracket + 2 >= text.size()) return std::nullopt;
  ProcStat stat;
  stat.state = text[bracket + 2];
  const char* at = text.c_str() + bracket + 3;
  for (int field = 4; *at; ++field) {
    char* end = nullptr;
    long long value = std::strtoll(at, &end, 10);
    if (end == at) break;
    at = end;
    if (field == 4) stat.parent = static_cast<std::int32_t>(value);
    if (field == 14 || field == 15) stat.cpu_ticks += static_cast<std::uint64_t>(value);
    if (field == 16 || field == 17) stat.reaped_ticks += static_cast<std::uint64_t>(value);
    if (field == 22) stat.start_ticks = static_cast<std::uint64_t>(value);
    if (field == 52) stat.exit_code = static_cast<std::int32_t>(value);
  }
  if (stat.start_ticks == 0) return std::nullopt;
  return stat;
}

std::optional<ProcStat> read_stat(const std::string& path) {
  auto text = read_small(path + "/stat");
  return text ? parse_stat(*text) : std::nullopt;
}

std::optional<ProcIo> read_io(const std::string& path) {
  auto text = read_small(path + "/io");
  if (!text) return std::nullopt;
  auto read = number_after(*text, "rchar: "), written = number_after(*text, "wchar: ");
  if (!read || !written) return std::nullopt;
  return ProcIo{*read, *written};
}

std::string read_wchan(const std::string& path) {
  auto text = read_small(path + "/wchan");
  return text && *text != "0" ? *text : "";
}

std::string read_syscall(const std::string& path) {
  auto text = read_small(path + "/syscall");
  if (!text) return "";
  char* end = nullptr;
  long number = std::strtol(text->c_str(), &end, 10);
  if (end == text->c_str() || number < 0) return "";  // "running", or blocked outside a system call
  for (const SyscallName& known : kSyscalls) {
    if (known.number == number) return known.name;
  }
  return "syscall " + std::to_string(number);
}

void ProcessTable::refresh() {
  links_.clear();
  DIR* directory = opendir("/proc");
  if (!directory) return;
  while (dirent* entry = readdir(directory)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    std::int32_t pid = std::atoi(entry->d_name);
    if (auto stat = read_stat(process_path(pid))) links_.push_back({stat->parent, pid});
  }
  closedir(directory);
  std::sort(links_.begin(), links_.end(), [](const Link& a, const Link& b) { return a.parent < b.parent; });
}

std::vector<std::int32_t> ProcessTable::descendants(std::int32_t pid) const {
  std::vector<std::int32_t> found;
  std::int32_t parent = pid;
  for (std::size_t next = 0;; ++next) {
    auto at = std::lower_bound(links_.begin(), links_.end(), parent,
                               [](const Link& link, std::int32_t wanted) { return link.parent < wanted; });
    for (; at != links_.end() && at->parent == parent; ++at) {
      // A table read while pids were reused may hold a circle.
      bool seen = at->child == pid || std::find(found.begin(), found.end(), at->child) != found.end();
      if (!seen) found.push_back(at->child);
    }
    if (next == found.size()) return found;
    parent = found[next];
  }
}

double seconds_of_ticks(std::uint64_t ticks) {
  static const double per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  return static_cast<double>(ticks) / per_second;
}

}  // namespace dshang::monitor
