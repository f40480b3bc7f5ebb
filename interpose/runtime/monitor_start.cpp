#include "interpose/runtime/monitor_start.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/flight/wire.h"
#include "core/rank/param.h"
#include "core/rank/say.h"
#include "interpose/runtime/beside.h"
#include "interpose/runtime/flight_memory.h"
#include "interpose/runtime/keeper.h"
#include "interpose/runtime/libc_base.h"

DSHANG_PARAM(string, MONITOR, "", "path of a program",
             "the dshang program that ranks start as their monitor; empty: the one beside libdshang.so");

namespace dshang::interpose {
namespace {

constexpr std::size_t kStack = 64 * 1024;

// Empty = unknown.
char start_directory[kLongestPath];

[[gnu::constructor]] void loaded() {
  int kept_errno = errno;
  if (!getcwd(start_directory, sizeof start_directory)) *start_directory = 0;
  errno = kept_errno;
}

struct Start {
  const char* program;
  std::uint64_t job;
  char* const* environment;
  bool takes_address;
  int error;
};

// Of posix_spawn's argv; static: a keeper that was not waited for any longer may still read them.
char digits[24];

// -1 with errno set.
int take_address(std::uint64_t job) {
  int fd = move_up(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd < 0) return -1;
  sockaddr_un address;
  socklen_t size = flight::wire_address(&address, getuid(), job);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 && listen(fd, SOMAXCONN) == 0) return fd;
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

// `socket`: its standard input, -1 = none.
int spawn(const Start* start, int socket) {
  static char name[] = "dshang", verb[] = "monitor", option[] = "--job", taken[] = "--socket-on-stdin";
  char* const arguments[] = {name, verb, option, digits, socket >= 0 ? taken : nullptr, nullptr};
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawn_file_actions_init(&files);
  if (socket >= 0) {
    posix_spawn_file_actions_adddup2(&files, socket, STDIN_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  if (!rank::has_stderr()) {
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t pid;
  int error = posix_spawn(&pid, start->program, &files, &attributes, arguments, start->environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

// A process between this one and the monitor, in this one's memory like a child of vfork(); it ends at once,
// and the monitor is an orphan.
int between(void* argument) {
  Start* start = static_cast<Start*>(argument);
  // Where it is gone the monitor begins where the program is now.
  if (*start_directory && chdir(start_directory) != 0) *start_directory = 0;
  int socket = start->takes_address ? take_address(start->job) : -1;
  // Another rank was faster.  After any other failure the monitor tries, and says what is wrong.
  if (start->takes_address && socket < 0 && errno == EADDRINUSE) return 0;
  start->error = spawn(start, socket);
  return 0;
}

}  // namespace

const char* monitor_program() {
  const char* named = param_MONITOR.value();
  if (*named) return named;
  static char path[kLongestPath];
  static bool searched = false, found = false;
  if (!searched) {
    searched = true;
    found = beside_library("dshang", path, sizeof path) && access(path, X_OK) == 0;
  }
  return found ? path : nullptr;
}

int start_monitor(const char* program, std::uint64_t job, char* const* environment) {
  static Start start;
  snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(job));
  start = {program, job, environment, !keeper::is_needed(), 0};
  if (!start.takes_address) {
    int error = keeper::run(between, &start);
    return error ? error : start.error;
  }
  void* stack = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return errno;
  // Without an exit signal: the host is sent no SIGCHLD, and only a wait with __WALL sees it.
  int pid = clone(between, static_cast<char*>(stack) + kStack, CLONE_VM | CLONE_VFORK, &start);
  int error = pid < 0 ? errno : 0;
  if (pid > 0) {
    while (waitpid(pid, nullptr, __WALL) < 0 && errno == EINTR) {
    }
    error = start.error;
  }
  munmap(stack, kStack);
  return error;
}

}  // namespace dshang::interpose
