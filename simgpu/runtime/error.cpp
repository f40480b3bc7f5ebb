// Errors and versions.
#include "simgpu/core/call.h"

using namespace simgpu;

SIMGPU_API Error cudaGetLastError() {
  return guarded(__func__, kUnknownError, [] { return last_error(true); });
}

SIMGPU_API Error cudaPeekAtLastError() {
  return guarded(__func__, kUnknownError, [] { return last_error(false); });
}

SIMGPU_API const char* cudaGetErrorName(int error) {
  return guarded(__func__, "cudaErrorUnknown", [error] {
    const char* name = runtime_error_name(error);
    return name != nullptr ? name : "unrecognized error code";
  });
}

SIMGPU_API const char* cudaGetErrorString(int error) {
  return guarded(__func__, "unknown error", [error] {
    const char* text = error_text(error);
    return text != nullptr ? text : "unrecognized error code";
  });
}

SIMGPU_API Error cudaRuntimeGetVersion(int* version) {
  return runtime_plain(__func__, [&]() -> Error {
    *version = kCudaVersion;
    return kSuccess;
  });
}

SIMGPU_API Error cudaDriverGetVersion(int* version) {
  return runtime_plain(__func__, [&]() -> Error {
    *version = kCudaVersion;
    return kSuccess;
  });
}
