// A cuBLAS handle: what the program set and may read back.
#pragma once

#include <cstddef>

#include "simgpu/core/abi.h"
#include "simgpu/core/call.h"

namespace simgpu {

// cublasStatus_t (cublas_api.h).
enum BlasStatus : int {
  kBlasSuccess = 0,
  kBlasNotInitialized = 1,
  kBlasAllocFailed = 3,
  kBlasInvalidValue = 7,
  kBlasExecutionFailed = 13,
  kBlasNotSupported = 15,
};

enum class PointerMode : int { kHost = 0, kDevice = 1 };

struct BlasHandle {
  void* stream = nullptr;
  int math_mode = 0;
  PointerMode pointer_mode = PointerMode::kHost;
  int multiprocessors = 0;
};

template <class Body>
BlasStatus blas_call(const char* name, Body&& body) noexcept {
  return guarded(name, kBlasAllocFailed, [&]() -> BlasStatus {
    if (enter_device() != kSuccess) return kBlasNotInitialized;
    return body();
  });
}

}  // namespace simgpu
