#include "simgpu/nccl/options.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "simgpu/core/log.h"
#include "simgpu/core/settings.h"
#include "simgpu/nccl/abi.h"

namespace simgpu::nccl {
namespace {

// Bytes where 0 is a value of its own.
size_t size_or_zero(const char* name) {
  const char* value = getenv(name);
  return value != nullptr && strcmp(value, "0") == 0 ? 0 : size_setting(name, 0, 1);
}

Options read_options() {
  Options read{};
  read.comm_bytes = static_cast<size_t>(integer_setting("SIMGPU_COMM_MB", 256, 0, 1 << 20)) << 20;
  read.data_cap = size_or_zero("SIMNCCL_DATA_CAP");
  read.mismatch_completes = size_or_zero("SIMNCCL_MISMATCH_COMPLETES");
  read.version =
      static_cast<int>(integer_setting("SIMNCCL_VERSION", kVersion, 2000, std::numeric_limits<int>::max()));
  if (const char* oracle = getenv("SIMNCCL_ORACLE")) read.oracle = oracle;
  if (const char* fault = getenv("SIMNCCL_FAULT"); fault != nullptr && *fault != '\0') {
    if (!parse_faults(fault, &read.faults)) {
      log(0,
          "SIMNCCL_FAULT=%s is not <rank>:<call>:<kind>[:<value>][,...] with calls counted from 1 and the "
          "kinds "
          "stall, kernel, drop, delay, error, kill; no fault is made",
          fault);
    }
  }
  return read;
}

}  // namespace

const Options& options() {
  static const Options* const read = new Options(read_options());
  return *read;
}

void tell_oracle(const char* format, ...) {
  const std::string& oracle = options().oracle;
  if (oracle.empty()) return;
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(line, sizeof line - 1, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  const size_t bytes = static_cast<size_t>(length) < sizeof line - 1 ? length : sizeof line - 2;
  line[bytes] = '\n';
  const std::string path = oracle + "." + std::to_string(getpid());
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return;
  if (write(fd, line, bytes + 1) < 0) log(1, "cannot write %s", path.c_str());
  close(fd);
}

}  // namespace simgpu::nccl
