// Contexts: the primary one of each device, and the stack of current ones of each thread.
#include <vector>

#include "simgpu/core/call.h"
#include "simgpu/core/capture.h"
#include "simgpu/core/profile.h"
#include "simgpu/core/stream.h"

using namespace simgpu;

namespace {

// What lies under the current context. Allocated at first use, never freed.
thread_local std::vector<Context*>* stacked;

std::vector<Context*>& stack() {
  if (stacked == nullptr) stacked = new std::vector<Context*>;
  return *stacked;
}

}  // namespace

SIMGPU_API Error cuDevicePrimaryCtxGetState(int handle, unsigned* flags, int* active) {
  return driver_query(__func__, [&]() -> Error {
    if (!valid_device(handle)) return kInvalidDevice;
    *flags = 0;
    *active = context_active(handle) ? 1 : 0;
    return kSuccess;
  });
}

SIMGPU_API Error cuDevicePrimaryCtxRetain(void** context, int handle) {
  return driver_query(__func__, [&]() -> Error {
    if (!valid_device(handle)) return kInvalidDevice;
    activate_context(handle);
    *context = primary_context(handle);
    return kSuccess;
  });
}

SIMGPU_API Error cuDevicePrimaryCtxRelease_v2(int handle) {
  return driver_query(__func__, [&]() -> Error { return valid_device(handle) ? kSuccess : kInvalidDevice; });
}

SIMGPU_API Error cuDevicePrimaryCtxSetFlags_v2(int handle, unsigned) {
  return driver_query(__func__, [&]() -> Error { return valid_device(handle) ? kSuccess : kInvalidDevice; });
}

SIMGPU_API Error cuCtxGetCurrent(void** context) {
  return driver_query(__func__, [&]() -> Error {
    if (context == nullptr) return kInvalidValue;
    *context = current_context();
    return kSuccess;
  });
}

SIMGPU_API Error cuCtxSetCurrent(void* handle) {
  return driver_query(__func__, [&]() -> Error {
    Context* context = find_context(handle);
    if (handle != nullptr && context == nullptr) return kInvalidContext;
    set_current_context(context);
    return kSuccess;
  });
}

SIMGPU_API Error cuCtxPushCurrent_v2(void* handle) {
  return driver_query(__func__, [&]() -> Error {
    Context* context = find_context(handle);
    if (context == nullptr) return kInvalidContext;
    stack().push_back(current_context());
    set_current_context(context);
    return kSuccess;
  });
}

SIMGPU_API Error cuCtxPopCurrent_v2(void** popped) {
  return driver_query(__func__, [&]() -> Error {
    if (current_context() == nullptr) return kInvalidContext;
    if (popped != nullptr) *popped = current_context();
    Context* below = nullptr;
    if (!stack().empty()) {
      below = stack().back();
      stack().pop_back();
    }
    set_current_context(below);
    return kSuccess;
  });
}

SIMGPU_API Error cuCtxGetDevice(int* handle) {
  return driver_query(__func__, [&]() -> Error {
    if (current_context() == nullptr) return kInvalidContext;
    *handle = current_context()->device;
    return kSuccess;
  });
}

SIMGPU_API Error cuCtxGetId(void* handle, unsigned long long* id) {
  return driver_query(__func__, [&]() -> Error {
    const Context* context = handle != nullptr ? find_context(handle) : current_context();
    if (context == nullptr) return kInvalidContext;
    *id = static_cast<unsigned long long>(context->device) + 1;
    return kSuccess;
  });
}

SIMGPU_API Error cuCtxSynchronize() {
  return driver_call(__func__, []() -> Error {
    if (Error error = check_unsafe_call()) return error;
    drain_device(device());
    return device_fault(device());
  });
}

SIMGPU_API Error cuCtxGetStreamPriorityRange(int* lowest, int* greatest) {
  return driver_call(__func__, [&]() -> Error {
    if (lowest != nullptr) *lowest = profile::kLowestStreamPriority;
    if (greatest != nullptr) *greatest = profile::kGreatestStreamPriority;
    return kSuccess;
  });
}
