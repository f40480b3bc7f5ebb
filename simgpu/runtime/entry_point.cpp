// Entry points of the driver, for programs that do not link it.
#include "simgpu/core/entry_point.h"

#include "simgpu/core/call.h"

using namespace simgpu;

namespace {

// cudaDriverEntryPointQueryResult.
constexpr int kFound = 0;
constexpr int kSymbolNotFound = 1;

Error look_up(const char* name, void** function, int* status) {
  if (name == nullptr || function == nullptr) return kInvalidValue;
  *function = driver_entry_point(name);
  if (status != nullptr) *status = *function != nullptr ? kFound : kSymbolNotFound;
  return kSuccess;
}

}  // namespace

SIMGPU_API Error cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long, int* status) {
  return runtime_query(__func__, [&]() -> Error { return look_up(name, function, status); });
}

SIMGPU_API Error cudaGetDriverEntryPoint_ptsz(const char* name, void** function, unsigned long long,
                                              int* status) {
  return runtime_query(__func__, [&]() -> Error { return look_up(name, function, status); });
}

SIMGPU_API Error cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                                  unsigned long long, int* status) {
  return runtime_query(__func__, [&]() -> Error { return look_up(name, function, status); });
}

SIMGPU_API Error cudaGetDriverEntryPointByVersion_ptsz(const char* name, void** function, unsigned,
                                                       unsigned long long, int* status) {
  return runtime_query(__func__, [&]() -> Error { return look_up(name, function, status); });
}
