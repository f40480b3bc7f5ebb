// Modules loaded at run time and launches of their kernels (Triton, NVRTC).
#include "simgpu/core/launch.h"

#include <cstring>

#include "simgpu/core/call.h"
#include "simgpu/core/module.h"
#include "simgpu/core/profile.h"

using namespace simgpu;

namespace {

// CUlaunchConfig (cuda.h).
struct LaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void* stream;
  void* attributes;
  unsigned attribute_count;
};

// CUfunction_attribute (cuda.h).
int function_attribute(int attribute) {
  switch (attribute) {
    case 0:  // MAX_THREADS_PER_BLOCK
      return profile::kThreadsPerBlock;
    case 4:  // NUM_REGS
      return profile::kRegistersPerKernel;
    case 5:  // PTX_VERSION
    case 6:  // BINARY_VERSION
      return profile::kMajor * 10 + profile::kMinor;
    default:  // sizes of shared, constant and local memory: none
      return 0;
  }
}

Error new_module(void** module) {
  if (module == nullptr) return kInvalidValue;
  *module = load_module();
  return kSuccess;
}

}  // namespace

SIMGPU_API Error cuModuleLoad(void** module, const char*) {
  return driver_call(__func__, [&]() -> Error { return new_module(module); });
}

SIMGPU_API Error cuModuleLoadData(void** module, const void*) {
  return driver_call(__func__, [&]() -> Error { return new_module(module); });
}

SIMGPU_API Error cuModuleLoadDataEx(void** module, const void*, unsigned, void*, void**) {
  return driver_call(__func__, [&]() -> Error { return new_module(module); });
}

SIMGPU_API Error cuModuleUnload(void* module) {
  return driver_call(__func__, [&]() -> Error { return unload_module(module); });
}

SIMGPU_API Error cuModuleGetFunction(void** function, void* module, const char* name) {
  return driver_call(__func__, [&]() -> Error { return module_kernel(module, name, function); });
}

SIMGPU_API Error cuLibraryLoadData(void** library, const void*, void*, void**, unsigned, void*, void**,
                                   unsigned) {
  return driver_query(__func__, [&]() -> Error { return new_module(library); });
}

SIMGPU_API Error cuLibraryUnload(void* library) {
  return driver_query(__func__, [&]() -> Error { return unload_module(library); });
}

SIMGPU_API Error cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  return driver_query(__func__, [&]() -> Error { return module_kernel(library, name, kernel); });
}

SIMGPU_API Error cuKernelGetFunction(void** function, void* kernel) {
  return driver_call(__func__, [&]() -> Error {
    *function = kernel;
    return kSuccess;
  });
}

SIMGPU_API Error cuFuncGetName(const char** name, void* function) {
  return driver_call(__func__, [&]() -> Error {
    *name = kernel_name(function);
    return kSuccess;
  });
}

SIMGPU_API Error cuFuncGetAttribute(int* value, int attribute, void*) {
  return driver_call(__func__, [&]() -> Error {
    *value = function_attribute(attribute);
    return kSuccess;
  });
}

SIMGPU_API Error cuFuncSetAttribute(void*, int, int) {
  return driver_call(__func__, []() -> Error { return kSuccess; });
}

SIMGPU_API Error cuFuncSetCacheConfig(void*, int) {
  return driver_call(__func__, []() -> Error { return kSuccess; });
}

SIMGPU_API Error cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int threads, size_t) {
  return driver_call(__func__, [&]() -> Error {
    *blocks = blocks_per_multiprocessor(threads);
    return kSuccess;
  });
}

SIMGPU_API Error cuOccupancyMaxActiveClusters(int* clusters, void*, const void*) {
  return driver_call(__func__, [&]() -> Error {
    *clusters = profile::kActiveClusters;
    return kSuccess;
  });
}

// --- launches ------------------------------------------------------------------------------------

SIMGPU_API Error cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                void* stream, void**, void**) {
  return driver_call(__func__, [&]() -> Error { return launch_kernel(stream); });
}

SIMGPU_API Error cuLaunchCooperativeKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                           unsigned, void* stream, void**) {
  return driver_call(__func__, [&]() -> Error { return launch_kernel(stream); });
}

SIMGPU_API Error cuLaunchKernelEx(const LaunchConfig* config, void*, void**, void**) {
  return driver_call(__func__, [&]() -> Error { return launch_kernel(config->stream); });
}

// A descriptor of a tensor for a kernel. Kernels do nothing, so it says nothing; the other arguments are not
// looked at.
SIMGPU_API Error cuTensorMapEncodeTiled(void* tensor_map) {
  return guarded(__func__, kUnknownError, [&]() -> Error {
    constexpr size_t kTensorMapBytes = 128;
    std::memset(tensor_map, 0, kTensorMapBytes);
    return kSuccess;
  });
}
