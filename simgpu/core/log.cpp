#include "simgpu/core/log.h"

#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>

namespace simgpu {
namespace {

// The environment and not settings(): reading the settings may itself have something to say.
int level_in_environment() {
  const char* value = std::getenv("SIMGPU_LOG");
  return value != nullptr ? std::atoi(value) : 0;
}

bool quiet_in_environment() {
  const char* value = std::getenv("SIMGPU_QUIET");
  return value != nullptr && value[0] == '1';
}

}  // namespace

void log(int level, const char* format, ...) {
  static const int kLevel = level_in_environment();
  if (level > kLevel) return;
  const int saved_errno = errno;
  char line[1024] = "simgpu: ";
  constexpr int kPrefix = 8;
  va_list arguments;
  va_start(arguments, format);
  int length = std::vsnprintf(line + kPrefix, sizeof line - kPrefix - 1, format, arguments);
  va_end(arguments);
  if (length < 0) length = 0;
  length += kPrefix;
  if (length > static_cast<int>(sizeof line) - 2) length = sizeof line - 2;
  line[length++] = '\n';
  if (write(STDERR_FILENO, line, static_cast<size_t>(length)) < 0) {
    // stderr is closed: nobody listens
  }
  errno = saved_errno;
}

void unsupported(const char* name) noexcept {
  static std::mutex* const kMutex = new std::mutex;
  static std::set<std::string>* const kNamed = new std::set<std::string>;
  static const bool kQuiet = quiet_in_environment();
  try {
    std::lock_guard<std::mutex> lock(*kMutex);
    if (!kNamed->insert(name).second) return;
  } catch (...) {
    // out of memory: it may be named twice
  }
  log(kQuiet ? 1 : 0, "%s is not supported", name);
}

void note_first_call(const char* name) { log(1, "%s", name); }

}  // namespace simgpu
