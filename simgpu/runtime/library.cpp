// Libraries of device code loaded at run time.
#include "simgpu/core/call.h"
#include "simgpu/core/module.h"

using namespace simgpu;

SIMGPU_API Error cudaLibraryLoadData(void** library, const void*, void*, void**, unsigned, void*, void**,
                                     unsigned) {
  return runtime_call(__func__, [&]() -> Error {
    *library = load_module();
    return kSuccess;
  });
}

SIMGPU_API Error cudaLibraryUnload(void* library) {
  return runtime_call(__func__, [&]() -> Error { return unload_module(library); });
}

SIMGPU_API Error cudaLibraryGetKernel(void** kernel, void* library, const char* name) {
  return runtime_call(__func__, [&]() -> Error { return module_kernel(library, name, kernel); });
}
