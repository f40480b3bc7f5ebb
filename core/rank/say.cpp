#include "core/rank/say.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

namespace dshang::rank {

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
  if (poll(&ready, 1, 0) == 1 && ready.revents == POLLOUT) {
    ssize_t written = write(STDERR_FILENO, line, length + 1);
    static_cast<void>(written);
  }
  errno = kept_errno;
}

}  // namespace dshang::rank
