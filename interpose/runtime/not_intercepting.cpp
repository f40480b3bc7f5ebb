#include "interpose/runtime/not_intercepting.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/rank/say.h"
#include "interpose/runtime/api.h"

namespace dshang::interpose {
namespace {

constexpr std::uint64_t kSecond = 1000000000;
constexpr const char* kThreadNames[] = {"NCCL Progress", "NCCL Service"};

bool is_nccl_thread(const char* tid) {
  char path[64], name[32];
  snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", tid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t length = read(fd, name, sizeof name - 1);
  close(fd);
  if (length <= 0) return false;
  name[length] = 0;
  for (const char* known : kThreadNames) {
    if (strncmp(name, known, strlen(known)) == 0) return true;
  }
  return false;
}

}  // namespace

bool has_communicator() {
  DIR* tasks = opendir("/proc/self/task");
  if (!tasks) return false;
  bool found = false;
  while (dirent* task = readdir(tasks)) {
    if (task->d_name[0] != '.' && is_nccl_thread(task->d_name)) {
      found = true;
      break;
    }
  }
  closedir(tasks);
  return found;
}

void NotIntercepting::look(std::uint64_t now_ns) {
  if (over_ || now_ns < next_look_ns_) return;
  next_look_ns_ = now_ns + 5 * kSecond;
  if (wrappers::nccl_seen()) {
    over_ = true;
    return;
  }
  if (!has_communicator()) {
    since_ns_ = 0;
    return;
  }
  if (!since_ns_) since_ns_ = now_ns;
  if (now_ns - since_ns_ < 60 * kSecond) return;
  over_ = true;
  rank::say(
      "NOT INTERCEPTING: there is an NCCL communicator, but no call of NCCL was seen for 60 s. NCCL is linked statically "
      "and hidden, loaded with RTLD_DEEPBIND, or called through ctypes (then preload libdshang_dlsym.so too, behind "
      "libdshang.so); hangs of this rank will not be found");
}

}  // namespace dshang::interpose
