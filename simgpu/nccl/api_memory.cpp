// Exported functions: memory, reduce operations, error texts.
#include <cstring>

#include "simgpu/nccl/entry.h"

using namespace simgpu;
using namespace simgpu::nccl;

extern "C" int cudaMalloc(void** address, size_t bytes);
extern "C" int cudaFree(void* address);

SIMGPU_API int ncclMemAlloc(void** address, size_t bytes) {
  return entry("ncclMemAlloc", [&]() -> Result {
    if (address == nullptr) return fail(kInvalidArgument, "ncclMemAlloc: the place for the address is NULL");
    const int error = cudaMalloc(address, bytes);
    return error == kSuccess ? kOk : fail(kUnhandledCudaError, "ncclMemAlloc: CUDA error %d", error);
  });
}
SIMNCCL_ALIAS(ncclMemAlloc);

SIMGPU_API int ncclMemFree(void* address) {
  return entry("ncclMemFree", [&]() -> Result {
    const int error = cudaFree(address);
    return error == kSuccess ? kOk : fail(kUnhandledCudaError, "ncclMemFree: CUDA error %d", error);
  });
}
SIMNCCL_ALIAS(ncclMemFree);

// A registration is the buffer's address; there is nothing to prepare.
SIMGPU_API int ncclCommRegister(Comm* comm, void* buffer, size_t bytes, void** handle) {
  return ready_entry("ncclCommRegister", comm, [&](const auto&) -> Result {
    if (buffer == nullptr || bytes == 0 || handle == nullptr) {
      return fail(kInvalidArgument, "ncclCommRegister: no buffer, no bytes or no place for the handle");
    }
    *handle = buffer;
    return kOk;
  });
}
SIMNCCL_ALIAS(ncclCommRegister);

SIMGPU_API int ncclCommDeregister(Comm* comm, void* handle) {
  return ready_entry("ncclCommDeregister", comm, [&](const auto&) {
    (void)handle;
    return kOk;
  });
}
SIMNCCL_ALIAS(ncclCommDeregister);

SIMGPU_API int ncclRedOpCreatePreMulSum(int* op, void* scalar, int type, int residence, Comm* comm) {
  return ready_entry("ncclRedOpCreatePreMulSum", comm, [&](const std::shared_ptr<Comm>& found) -> Result {
    if (op == nullptr || scalar == nullptr || !valid_type(type) ||
        (residence != kScalarDevice && residence != kScalarHostImmediate)) {
      return fail(kInvalidArgument, "ncclRedOpCreatePreMulSum: invalid arguments");
    }
    PreMultiply operation;
    operation.used = true;
    if (residence == kScalarDevice) {
      operation.on_device = scalar;
    } else {
      memcpy(operation.scalar, scalar, element_bytes(type));
    }
    *op = found->add_reduce_op(operation);
    return kOk;
  });
}
SIMNCCL_ALIAS(ncclRedOpCreatePreMulSum);

SIMGPU_API int ncclRedOpDestroy(int op, Comm* comm) {
  return ready_entry("ncclRedOpDestroy", comm, [&](const std::shared_ptr<Comm>& found) {
    if (found->remove_reduce_op(op)) return kOk;
    return fail(kInvalidArgument, "ncclRedOpDestroy: %d was not made by ncclRedOpCreatePreMulSum", op);
  });
}
SIMNCCL_ALIAS(ncclRedOpDestroy);

// The texts are NCCL's (src/init.cc, ncclGetErrorString): programs look for some of them.
SIMGPU_API const char* ncclGetErrorString(int result) {
  switch (result) {
    case kOk:
      return "no error";
    case kUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case kSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case kInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case kInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case kInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case kRemoteError:
      return "remote process exited or there was a network error";
    case kInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}
SIMNCCL_ALIAS(ncclGetErrorString);

SIMGPU_API const char* ncclGetLastError(Comm* comm) {
  (void)comm;  // NCCL keeps one text for the process, too
  return last_error_text();
}
SIMNCCL_ALIAS(ncclGetLastError);
