// cuBLAS: handles, and matrix products as kernels that do nothing.
#include <cstring>

#include "simgpu/blas/handle.h"
#include "simgpu/core/copy.h"
#include "simgpu/core/launch.h"

using namespace simgpu;

namespace {

BlasStatus launch(const BlasHandle* handle) {
  if (handle == nullptr) return kBlasNotInitialized;
  return launch_kernel(handle->stream) == kSuccess ? kBlasSuccess : kBlasExecutionFailed;
}

// A scalar result: 0, at once in host memory, in the stream's order in device memory.
BlasStatus zero_result(const BlasHandle* handle, void* result, size_t bytes) {
  if (handle == nullptr) return kBlasNotInitialized;
  if (handle->pointer_mode == PointerMode::kHost) {
    std::memset(result, 0, bytes);
    return launch(handle);
  }
  return queue_fill(result, 0, bytes, handle->stream) == kSuccess ? kBlasSuccess : kBlasExecutionFailed;
}

}  // namespace

SIMGPU_API BlasStatus cublasCreate_v2(BlasHandle** handle) {
  return blas_call(__func__, [&] {
    *handle = new BlasHandle;
    return kBlasSuccess;
  });
}

SIMGPU_API BlasStatus cublasDestroy_v2(BlasHandle* handle) {
  return blas_call(__func__, [&] {
    delete handle;
    return kBlasSuccess;
  });
}

SIMGPU_API BlasStatus cublasSetStream_v2(BlasHandle* handle, void* stream) {
  return blas_call(__func__, [&] {
    handle->stream = stream;
    return kBlasSuccess;
  });
}

SIMGPU_API BlasStatus cublasGetStream_v2(BlasHandle* handle, void** stream) {
  return blas_call(__func__, [&] {
    *stream = handle->stream;
    return kBlasSuccess;
  });
}

SIMGPU_API BlasStatus cublasSetWorkspace_v2(BlasHandle*, void*, size_t) {
  return blas_call(__func__, [] { return kBlasSuccess; });
}

SIMGPU_API BlasStatus cublasSetMathMode(BlasHandle* handle, int mode) {
  return blas_call(__func__, [&] {
    handle->math_mode = mode;
    return kBlasSuccess;
  });
}

SIMGPU_API BlasStatus cublasGetMathMode(BlasHandle* handle, int* mode) {
  return blas_call(__func__, [&] {
    *mode = handle->math_mode;
    return kBlasSuccess;
  });
}

SIMGPU_API BlasStatus cublasSetPointerMode_v2(BlasHandle* handle, PointerMode mode) {
  return blas_call(__func__, [&] {
    handle->pointer_mode = mode;
    return kBlasSuccess;
  });
}

SIMGPU_API BlasStatus cublasGetPointerMode_v2(BlasHandle* handle, PointerMode* mode) {
  return blas_call(__func__, [&] {
    *mode = handle->pointer_mode;
    return kBlasSuccess;
  });
}

SIMGPU_API BlasStatus cublasSetSmCountTarget(BlasHandle* handle, int count) {
  return blas_call(__func__, [&] {
    handle->multiprocessors = count;
    return kBlasSuccess;
  });
}

SIMGPU_API BlasStatus cublasGetSmCountTarget(BlasHandle* handle, int* count) {
  return blas_call(__func__, [&] {
    *count = handle->multiprocessors;
    return kBlasSuccess;
  });
}

// --- products and vector updates -----------------------------------------------------------------

// A function whose result lies on the device: one launch. Only the handle of its arguments is looked at; in
// the C calling convention the caller takes care of the others.
#define SIMGPU_BLAS_KERNEL(name)                                \
  SIMGPU_API BlasStatus name(BlasHandle* handle) {              \
    return blas_call(__func__, [&] { return launch(handle); }); \
  }

SIMGPU_BLAS_KERNEL(cublasGemmEx)
SIMGPU_BLAS_KERNEL(cublasGemmBatchedEx)
SIMGPU_BLAS_KERNEL(cublasGemmStridedBatchedEx)
SIMGPU_BLAS_KERNEL(cublasSgemmEx)
SIMGPU_BLAS_KERNEL(cublasHgemm)
SIMGPU_BLAS_KERNEL(cublasSgemm_v2)
SIMGPU_BLAS_KERNEL(cublasDgemm_v2)
SIMGPU_BLAS_KERNEL(cublasCgemm_v2)
SIMGPU_BLAS_KERNEL(cublasZgemm_v2)
SIMGPU_BLAS_KERNEL(cublasSgemmBatched)
SIMGPU_BLAS_KERNEL(cublasDgemmBatched)
SIMGPU_BLAS_KERNEL(cublasCgemmBatched)
SIMGPU_BLAS_KERNEL(cublasZgemmBatched)
SIMGPU_BLAS_KERNEL(cublasSgemmStridedBatched)
SIMGPU_BLAS_KERNEL(cublasDgemmStridedBatched)
SIMGPU_BLAS_KERNEL(cublasCgemmStridedBatched)
SIMGPU_BLAS_KERNEL(cublasZgemmStridedBatched)
SIMGPU_BLAS_KERNEL(cublasSgemv_v2)
SIMGPU_BLAS_KERNEL(cublasDgemv_v2)
SIMGPU_BLAS_KERNEL(cublasCgemv_v2)
SIMGPU_BLAS_KERNEL(cublasZgemv_v2)
SIMGPU_BLAS_KERNEL(cublasSscal_v2)
SIMGPU_BLAS_KERNEL(cublasDscal_v2)
SIMGPU_BLAS_KERNEL(cublasSaxpy_v2)
SIMGPU_BLAS_KERNEL(cublasDaxpy_v2)

#undef SIMGPU_BLAS_KERNEL

// --- scalar results ------------------------------------------------------------------------------

SIMGPU_API BlasStatus cublasSdot_v2(BlasHandle* handle, int, const float*, int, const float*, int,
                                    float* result) {
  return blas_call(__func__, [&] { return zero_result(handle, result, sizeof *result); });
}

SIMGPU_API BlasStatus cublasDdot_v2(BlasHandle* handle, int, const double*, int, const double*, int,
                                    double* result) {
  return blas_call(__func__, [&] { return zero_result(handle, result, sizeof *result); });
}

SIMGPU_API BlasStatus cublasCdotu_v2(BlasHandle* handle, int, const void*, int, const void*, int,
                                     void* result) {
  return blas_call(__func__, [&] { return zero_result(handle, result, 2 * sizeof(float)); });
}

SIMGPU_API BlasStatus cublasCdotc_v2(BlasHandle* handle, int, const void*, int, const void*, int,
                                     void* result) {
  return blas_call(__func__, [&] { return zero_result(handle, result, 2 * sizeof(float)); });
}

SIMGPU_API BlasStatus cublasZdotu_v2(BlasHandle* handle, int, const void*, int, const void*, int,
                                     void* result) {
  return blas_call(__func__, [&] { return zero_result(handle, result, 2 * sizeof(double)); });
}

SIMGPU_API BlasStatus cublasZdotc_v2(BlasHandle* handle, int, const void*, int, const void*, int,
                                     void* result) {
  return blas_call(__func__, [&] { return zero_result(handle, result, 2 * sizeof(double)); });
}

// Only the 16-bit and 32-bit types that PyTorch asks for; cudaDataType_t: 0 f32, 2 f16, 14 bf16
// (library_types.h).
SIMGPU_API BlasStatus cublasDotEx(BlasHandle* handle, int, const void*, int, int, const void*, int, int,
                                  void* result, int result_type, int) {
  return blas_call(__func__, [&]() -> BlasStatus {
    if (result_type == 0) return zero_result(handle, result, sizeof(float));
    if (result_type == 2 || result_type == 14) return zero_result(handle, result, 2);
    unsupported("cublasDotEx with this result type");
    return kBlasNotSupported;
  });
}
