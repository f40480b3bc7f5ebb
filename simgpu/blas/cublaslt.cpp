// cuBLASLt: descriptors that nobody reads, one algorithm for everything, and a product that does nothing.
#include <cstdint>
#include <cstring>

#include "simgpu/blas/handle.h"
#include "simgpu/core/launch.h"

using namespace simgpu;

namespace {

// Any descriptor; what is set in it has no effect, since kernels do nothing.
struct Descriptor {};

// cublasLtMatmulHeuristicResult_t (cublasLt.h).
struct Heuristic {
  uint64_t algorithm[8];
  size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

static_assert(sizeof(Heuristic) == 96, "size of cublasLtMatmulHeuristicResult_t");

BlasStatus create(const char* name, Descriptor** descriptor) {
  return blas_call(name, [&] {
    *descriptor = new Descriptor;
    return kBlasSuccess;
  });
}

BlasStatus destroy(const char* name, Descriptor* descriptor) {
  return blas_call(name, [&] {
    delete descriptor;
    return kBlasSuccess;
  });
}

BlasStatus accept(const char* name) {
  return blas_call(name, [] { return kBlasSuccess; });
}

}  // namespace

SIMGPU_API BlasStatus cublasLtCreate(Descriptor** handle) { return create(__func__, handle); }
SIMGPU_API BlasStatus cublasLtDestroy(Descriptor* handle) { return destroy(__func__, handle); }

SIMGPU_API BlasStatus cublasLtMatmulDescCreate(Descriptor** descriptor, int, int) {
  return create(__func__, descriptor);
}
SIMGPU_API BlasStatus cublasLtMatmulDescDestroy(Descriptor* descriptor) {
  return destroy(__func__, descriptor);
}
SIMGPU_API BlasStatus cublasLtMatmulDescSetAttribute(Descriptor*, int, const void*, size_t) {
  return accept(__func__);
}

SIMGPU_API BlasStatus cublasLtMatrixLayoutCreate(Descriptor** layout, int, uint64_t, uint64_t, int64_t) {
  return create(__func__, layout);
}
SIMGPU_API BlasStatus cublasLtMatrixLayoutDestroy(Descriptor* layout) { return destroy(__func__, layout); }
SIMGPU_API BlasStatus cublasLtMatrixLayoutSetAttribute(Descriptor*, int, const void*, size_t) {
  return accept(__func__);
}

SIMGPU_API BlasStatus cublasLtMatmulPreferenceCreate(Descriptor** preference) {
  return create(__func__, preference);
}
SIMGPU_API BlasStatus cublasLtMatmulPreferenceDestroy(Descriptor* preference) {
  return destroy(__func__, preference);
}
SIMGPU_API BlasStatus cublasLtMatmulPreferenceSetAttribute(Descriptor*, int, const void*, size_t) {
  return accept(__func__);
}

SIMGPU_API BlasStatus cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*,
                                                     int wanted, Heuristic* results, int* count) {
  return blas_call(__func__, [&]() -> BlasStatus {
    if (results == nullptr || count == nullptr || wanted < 1) return kBlasInvalidValue;
    std::memset(results, 0, sizeof *results);
    *count = 1;
    return kBlasSuccess;
  });
}

SIMGPU_API BlasStatus cublasLtMatmul(void*, void*, const void*, const void*, void*, const void*, void*,
                                     const void*, const void*, void*, void*, void*, const void*, void*,
                                     size_t, void* stream) {
  return blas_call(__func__,
                   [&] { return launch_kernel(stream) == kSuccess ? kBlasSuccess : kBlasExecutionFailed; });
}
