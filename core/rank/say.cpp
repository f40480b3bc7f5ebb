#include "core/rank/say.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dshang::rank {
namespace {

// By number, as fstat() is a versioned symbol of glibc 2.33.
bool look_at_stderr(struct statx* info) {
  return syscall(SYS_statx, STDERR_FILENO, "", AT_EMPTY_PATH, STATX_TYPE | STATX_INO, info) == 0;
}

bool had_stderr = false;
struct statx stderr_at_start;

[[gnu::constructor]] void loaded() {
  int kept_errno = errno;
  had_stderr = look_at_stderr(&stderr_at_start);
  errno = kept_errno;
}

bool is_as_at_start(const struct statx& now) {
  return now.stx_ino == stderr_at_start.stx_ino && now.stx_dev_major == stderr_at_start.stx_dev_major &&
         now.stx_dev_minor == stderr_at_start.stx_dev_minor;
}

}  // namespace

bool has_stderr() {
  struct statx now;
  if (!had_stderr || !look_at_stderr(&now)) return false;
  int access = fcntl(STDERR_FILENO, F_GETFL) & O_ACCMODE;
  if (access == O_RDONLY) return false;
  if (is_as_at_start(now)) return true;
  return S_ISCHR(now.stx_mode) || S_ISFIFO(now.stx_mode) || (S_ISREG(now.stx_mode) && access == O_WRONLY);
}

void say(const char* format, ...) {
  int kept_errno = errno;
  char line[512] = "dshang: ";
  size_t start = strlen(line);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line + start, sizeof line - start - 1, format, arguments);
  va_end(arguments);
  size_t length = strlen(line);
  line[length] = '\n';
  pollfd ready{STDERR_FILENO, POLLOUT, 0};
  // A pipe whose reader is gone (POLLERR) would send SIGPIPE to the host.
  if (has_stderr() && poll(&ready, 1, 0) == 1 && ready.revents == POLLOUT) {
    ssize_t written = write(STDERR_FILENO, line, length + 1);
    static_cast<void>(written);
  }
  errno = kept_errno;
}

}  // namespace dshang::rank
