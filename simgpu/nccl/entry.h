// What every exported nccl* function does first and last.
#pragma once

#include <memory>

#include "simgpu/core/call.h"
#include "simgpu/nccl/comm.h"
#include "simgpu/nccl/error.h"
#include "simgpu/nccl/group.h"

// NCCL exports every function a second time under this name, for profilers.
#define SIMNCCL_ALIAS(name) \
  extern "C" __attribute__((visibility("default"), alias(#name))) decltype(name) p##name

namespace simgpu::nccl {

// A function that needs a device. In a child forked after CUDA was in use it fails, as on hardware.
template <class Body>
int entry(const char* name, Body&& body) noexcept {
  return guarded(name, kInternalError, [&]() -> Result {
    if (const Error error = enter_device()) {
      return refuse(fail(kUnhandledCudaError, "%s: CUDA error %d", name, error));
    }
    return body();
  });
}

// A function of one communicator; `body` takes a reference to its shared pointer. An error makes the group
// fail.
template <class Body>
int comm_entry(const char* name, Comm* handle, Body&& body) noexcept {
  return entry(name, [&]() -> Result {
    const std::shared_ptr<Comm> comm = find_comm(handle);
    if (comm == nullptr) return refuse(fail(kInvalidArgument, "%s: %p is not a communicator", name, handle));
    return refuse(body(comm));
  });
}

// The same for what needs a communicator that is complete.
template <class Body>
int ready_entry(const char* name, Comm* handle, Body&& body) noexcept {
  return comm_entry(name, handle, [&](const std::shared_ptr<Comm>& comm) -> Result {
    if (comm->state() == kOk) return body(comm);
    return fail(kInvalidArgument, "%s: the communicator is not ready yet, or could not be made", name);
  });
}

}  // namespace simgpu::nccl
