// Functions of the driver by name.
#include "simgpu/core/entry_point.h"

#include "simgpu/core/call.h"

using namespace simgpu;

namespace {

// CUdriverProcAddressQueryResult.
constexpr int kFound = 0;
constexpr int kSymbolNotFound = 1;

}  // namespace

SIMGPU_API Error cuGetProcAddress_v2(const char* name, void** function, int, unsigned long long,
                                     int* status) {
  return guarded(__func__, kUnknownError, [&]() -> Error {
    if (name == nullptr || function == nullptr) return kInvalidValue;
    *function = driver_entry_point(name);
    if (status != nullptr) *status = *function != nullptr ? kFound : kSymbolNotFound;
    return *function != nullptr ? kSuccess : kNotFound;
  });
}

SIMGPU_API Error cuGetProcAddress(const char* name, void** function, int, unsigned long long) {
  return guarded(__func__, kUnknownError, [&]() -> Error {
    if (name == nullptr || function == nullptr) return kInvalidValue;
    *function = driver_entry_point(name);
    return *function != nullptr ? kSuccess : kNotFound;
  });
}
