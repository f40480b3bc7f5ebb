#include "interpose/runtime/log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

namespace dshang::interpose {

void log_line(const char* format, ...) {
  int saved = errno;
  char line[512] = "dshang: ";
  constexpr int kPrefix = 8;
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line + kPrefix, sizeof line - kPrefix - 1, format, arguments);
  va_end(arguments);
  if (length > 0) {
    int end = kPrefix + length;
    if (end > static_cast<int>(sizeof line) - 2) end = static_cast<int>(sizeof line) - 2;
    line[end++] = '\n';
    // A pipe is writable when it has room for a whole page, which is more than a line; one whose reader is gone would
    // send SIGPIPE to the host.
    pollfd out{STDERR_FILENO, POLLOUT, 0};
    if (poll(&out, 1, 0) == 1 && out.revents == POLLOUT) {
      ssize_t written = write(STDERR_FILENO, line, static_cast<size_t>(end));
      (void)written;  // there is nobody else to tell
    }
  }
  errno = saved;
}

}  // namespace dshang::interpose
