#include "core/job/params.h"

#include <cstdlib>

namespace dshang::job {

Params params_from(const std::vector<std::string>& lines) {
  Params params;
  for (const std::string& line : lines) {
    std::size_t equals = line.find('=');
    if (equals == line.npos) continue;
    std::string name = line.substr(0, equals);
    const char* value = line.c_str() + equals + 1;
    if (name == "DSHANG_STALL_AFTER") params.stall_after = std::strtod(value, nullptr);
    if (name == "DSHANG_PYTHON_STACKS") params.python_stacks = std::strtol(value, nullptr, 10) != 0;
    if (name == "DSHANG_MEMORY_HEADROOM") {
      char* end = nullptr;
      params.memory_headroom = std::strtod(value, &end);
      params.memory_headroom_is_percent = *end == '%';
    }
    if (name == "DSHANG_PROBE") params.probe = std::strtol(value, nullptr, 10) != 0;
  }
  return params;
}

}  // namespace dshang::job
