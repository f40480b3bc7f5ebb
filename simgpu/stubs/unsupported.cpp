#include "simgpu/stubs/unsupported.h"

#include "simgpu/core/context.h"
#include "simgpu/core/log.h"

namespace simgpu {

long unsupported_call(const char* name, long code) {
  unsupported(name);
  return code;
}

long unsupported_runtime_call(const char* name, long code) {
  unsupported(name);
  keep_error(static_cast<Error>(code));
  return code;
}

}  // namespace simgpu
