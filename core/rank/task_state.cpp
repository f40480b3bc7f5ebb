#include "core/rank/task_state.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cstddef>

namespace dshang::rank {
namespace {

bool read_file(std::uint32_t tid, const char* name, char* text, std::size_t size) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%u/%s", tid, name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  std::size_t used = 0;
  for (ssize_t n; used + 1 < size && (n = read(fd, text + used, size - 1 - used)) > 0;)
    used += static_cast<std::size_t>(n);
  close(fd);
  text[used] = 0;
  return used > 0;
}

std::uint64_t number_at(const char* at) {
  while (*at == ' ' || *at == '\t') ++at;
  std::uint64_t n = 0;
  for (; *at >= '0' && *at <= '9'; ++at) n = n * 10 + std::uint64_t(*at - '0');
  return n;
}

std::uint64_t field(const char* text, const char* name) {
  const char* at = strstr(text, name);
  return at ? number_at(at + strlen(name)) : 0;
}

}  // namespace

TaskState task_state(std::uint32_t tid) {
  TaskState task;
  char text[4096];
  if (!read_file(tid, "stat", text, sizeof text)) return task;
  const char* at = strrchr(text, ')');  // the name before it may hold anything
  if (!at || at[1] != ' ') return task;
  char state = at[2];
  at += 2;
  for (unsigned n = 3; n < 14 && at; ++n) at = strchr(at + 1, ' ');  // fields 14 and 15: utime, stime
  if (!at) return task;
  task.cpu_ticks = number_at(at);
  at = strchr(at + 1, ' ');
  if (at) task.cpu_ticks += number_at(at);
  if (!read_file(tid, "status", text, sizeof text)) return task;
  task.switches = field(text, "\nvoluntary_ctxt_switches:") + field(text, "\nnonvoluntary_ctxt_switches:");
  task.state = state;
  return task;
}

bool is_own_task(std::uint32_t tid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%u", tid);
  return access(path, F_OK) == 0;
}

}  // namespace dshang::rank
