// The rows of cuda.def against the CUDA runtime's header; cuda_declared.inc (signatures.cmake) lists those that it
// declares.
#include <cuda_runtime_api.h>

#include "interpose/symbols/signatures.h"

namespace dshang::interpose {

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include "cuda_declared.inc"

static_assert(int{cudaErrorNotSupported} == static_cast<int>(abi::CudaResult::kNotSupported));

}  // namespace dshang::interpose
