#include "monitor/daemon.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace dshang::monitor {
namespace {

constexpr const char* kName = "dshang-monitor";
constexpr rlim_t kDescriptors = 65536;
mode_t mask_before = 022;

void close_all_but(int keep) {
#ifdef SYS_close_range
  bool below = keep <= 3 || syscall(SYS_close_range, 3u, static_cast<unsigned>(keep) - 1, 0u) == 0;
  if (below && syscall(SYS_close_range, static_cast<unsigned>(keep) + 1, ~0u, 0u) == 0) return;
#endif
  std::vector<int> found;
  if (DIR* directory = opendir("/proc/self/fd")) {
    while (dirent* entry = readdir(directory)) {
      int fd = std::atoi(entry->d_name);
      if (fd > 2 && fd != keep && fd != dirfd(directory)) found.push_back(fd);
    }
    closedir(directory);
  }
  for (int fd : found) close(fd);
}

void silence_standard_streams() {
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return;
  for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
  if (null > 2) close(null);
}

// The rank may be bound to the cores of its GPU; the monitor must not take time there.
void leave_cpu_binding() {
  cpu_set_t all;
  memset(&all, 0xff, sizeof all);
  sched_setaffinity(0, sizeof all, &all);
  syscall(SYS_set_mempolicy, 0 /* MPOL_DEFAULT */, nullptr, 0);
}

void ignore_signals() {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int number :
       {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU, SIGXFSZ}) {
    signal(number, SIG_IGN);
  }
  signal(SIGCHLD, SIG_DFL);
}

// A rank's soft limit may be small; each rank and each reader of the metrics takes some.
void allow_many_descriptors() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, kDescriptors));
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

void stay_in_foreground() {
  allow_many_descriptors();
  prctl(PR_SET_NAME, kName, 0, 0, 0);
  ignore_signals();
  mask_before = umask(077);
}

mode_t mask_at_start() { return mask_before; }

bool become_daemon(int keep) {
  pid_t child = fork();
  if (child < 0) return false;
  if (child > 0) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  setsid();
  pid_t grandchild = fork();
  if (grandchild != 0) _exit(grandchild < 0 ? 1 : 0);
  silence_standard_streams();
  close_all_but(keep);
  leave_cpu_binding();
  stay_in_foreground();
  return true;
}

}  // namespace dshang::monitor
