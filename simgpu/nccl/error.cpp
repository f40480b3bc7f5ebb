#include "simgpu/nccl/error.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "simgpu/core/log.h"

namespace simgpu::nccl {
namespace {

constexpr size_t kTextBytes = 512;
std::mutex text_mutex;
char text[kTextBytes];

}  // namespace

Result fail(Result result, const char* format, ...) {
  char line[kTextBytes];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  log(0, "NCCL: %s", line);
  std::lock_guard lock(text_mutex);
  memcpy(text, line, sizeof text);
  return result;
}

const char* last_error_text() { return text; }

}  // namespace simgpu::nccl
