// Kernels: what a program registers when its image is loaded, and launches. Programs built with CUDA 13
// launch by
// __cudaLaunchKernel, older ones by cudaLaunchKernel (crt/host_runtime.h).
#include "simgpu/core/launch.h"

#include <cstring>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "simgpu/core/call.h"
#include "simgpu/core/ledger.h"
#include "simgpu/core/profile.h"
#include "simgpu/core/stream_object.h"

using namespace simgpu;

namespace {

struct KernelNames {
  std::mutex mutex;
  std::unordered_map<const void*, const char*> names;
};

KernelNames& kernels() {
  static KernelNames* const kKernels = new KernelNames;
  return *kKernels;
}

// kernel<<<grid, block, shared, stream>>> pushes this, and the kernel's host stub pops it.
struct CallConfiguration {
  Dim3 grid;
  Dim3 block;
  size_t shared_bytes;
  void* stream;
};

// Allocated at first use, never freed: host code of static destructors may still launch.
thread_local std::vector<CallConfiguration>* call_configurations;

// cudaLaunchConfig_t (driver_types.h).
struct LaunchConfig {
  Dim3 grid;
  Dim3 block;
  size_t shared_bytes;
  void* stream;
  void* attributes;
  unsigned attribute_count;
};

// cudaFuncAttributes (driver_types.h).
struct FunctionAttributes {
  size_t shared_bytes;
  size_t constant_bytes;
  size_t local_bytes;
  int max_threads_per_block;
  int registers;
  int ptx_version;
  int binary_version;
  int cache_mode_ca;
  int max_dynamic_shared_bytes;
  int preferred_carveout;
  int cluster_dim_must_be_set;
  int required_cluster_width;
  int required_cluster_height;
  int required_cluster_depth;
  int cluster_scheduling_policy;
  int non_portable_cluster_size_allowed;
  int reserved[16];
};

Error check_shape(Dim3 grid, Dim3 block) {
  const unsigned long long threads = 1ull * block.x * block.y * block.z;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return kInvalidConfiguration;
  if (grid.y > profile::kGridDimYZ || grid.z > profile::kGridDimYZ) return kInvalidConfiguration;
  return threads == 0 || threads > profile::kThreadsPerBlock ? kInvalidConfiguration : kSuccess;
}

Error launch(Dim3 grid, Dim3 block, void* stream) {
  if (Error error = check_shape(grid, block)) return error;
  return launch_kernel(stream);
}

}  // namespace

// --- registration, at load time: no device is touched --------------------------------------------

SIMGPU_API void** __cudaRegisterFatBinary(void*) {
  static void* handle[8];
  return guarded(__func__, static_cast<void**>(handle), [] {
    load_nvml();  // a program with kernels will look for it, maybe before its first call of CUDA
    return static_cast<void**>(handle);
  });
}

SIMGPU_API void __cudaRegisterFatBinaryEnd(void**) {}

SIMGPU_API void __cudaUnregisterFatBinary(void**) {}

SIMGPU_API void __cudaRegisterFunction(void**, const char* host_function, char*, const char* name, int, void*,
                                       void*, void*, void*, int*) {
  guarded(__func__, 0, [&] {
    std::lock_guard<std::mutex> lock(kernels().mutex);
    kernels().names[host_function] = name;
    return 0;
  });
}

SIMGPU_API void __cudaRegisterVar(void**, char* host_variable, char*, const char*, int, size_t bytes, int,
                                  int) {
  guarded(__func__, 0, [&] {
    if (bytes > 0) add_block(host_variable, bytes, 0, MemoryKind::kSymbol);
    return 0;
  });
}

SIMGPU_API char __cudaInitModule(void**) { return 1; }

SIMGPU_API unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, size_t shared_bytes, void* stream) {
  return guarded(__func__, 1u, [&] {
    if (call_configurations == nullptr) call_configurations = new std::vector<CallConfiguration>;
    call_configurations->push_back({grid, block, shared_bytes, stream});
    return 0u;
  });
}

SIMGPU_API Error __cudaPopCallConfiguration(Dim3* grid, Dim3* block, size_t* shared_bytes, void** stream) {
  return runtime_plain(__func__, [&]() -> Error {
    if (call_configurations == nullptr || call_configurations->empty()) return kMissingConfiguration;
    const CallConfiguration configuration = call_configurations->back();
    call_configurations->pop_back();
    *grid = configuration.grid;
    *block = configuration.block;
    *shared_bytes = configuration.shared_bytes;
    *stream = configuration.stream;
    return kSuccess;
  });
}

// --- kernels as handles: the host function's address is the handle -------------------------------

SIMGPU_API Error __cudaGetKernel(void** kernel, const void* function) {
  return runtime_plain(__func__, [&]() -> Error {
    *kernel = const_cast<void*>(function);
    return kSuccess;
  });
}

SIMGPU_API Error cudaGetKernel(void** kernel, const void* function) {
  return runtime_plain(__func__, [&]() -> Error {
    *kernel = const_cast<void*>(function);
    return kSuccess;
  });
}

SIMGPU_API Error cudaGetFuncBySymbol(void** function, const void* symbol) {
  return runtime_plain(__func__, [&]() -> Error {
    *function = const_cast<void*>(symbol);
    return kSuccess;
  });
}

SIMGPU_API Error cudaFuncGetName(const char** name, const void* function) {
  return runtime_plain(__func__, [&]() -> Error {
    std::lock_guard<std::mutex> lock(kernels().mutex);
    const auto found = kernels().names.find(function);
    if (found == kernels().names.end()) return kInvalidValue;
    *name = found->second;
    return kSuccess;
  });
}

// --- launches ------------------------------------------------------------------------------------

SIMGPU_API Error __cudaLaunchKernel(void*, Dim3 grid, Dim3 block, void**, size_t, void* stream) {
  return runtime_call(__func__, [&]() -> Error { return launch(grid, block, stream); });
}

// Code built with --default-stream per-thread: stream 0 is the thread's own.
SIMGPU_API Error __cudaLaunchKernel_ptsz(void*, Dim3 grid, Dim3 block, void**, size_t, void* stream) {
  return runtime_call(__func__, [&]() -> Error {
    return launch(grid, block, stream != nullptr ? stream : reinterpret_cast<void*>(kPerThreadStream));
  });
}

SIMGPU_API Error cudaLaunchKernel(const void*, Dim3 grid, Dim3 block, void**, size_t, void* stream) {
  return runtime_call(__func__, [&]() -> Error { return launch(grid, block, stream); });
}

SIMGPU_API Error cudaLaunchCooperativeKernel(const void*, Dim3 grid, Dim3 block, void**, size_t,
                                             void* stream) {
  return runtime_call(__func__, [&]() -> Error { return launch(grid, block, stream); });
}

SIMGPU_API Error cudaLaunchKernelExC(const LaunchConfig* config, const void*, void**) {
  return runtime_call(__func__,
                      [&]() -> Error { return launch(config->grid, config->block, config->stream); });
}

// --- what a kernel needs: the same for all, and consistent with the device -----------------------

SIMGPU_API Error cudaFuncGetAttributes(FunctionAttributes* attributes, const void*) {
  return runtime_call(__func__, [&]() -> Error {
    std::memset(attributes, 0, sizeof *attributes);
    attributes->max_threads_per_block = profile::kThreadsPerBlock;
    attributes->registers = profile::kRegistersPerKernel;
    attributes->ptx_version = profile::kMajor * 10 + profile::kMinor;
    attributes->binary_version = profile::kMajor * 10 + profile::kMinor;
    attributes->max_dynamic_shared_bytes = profile::kSharedPerBlock;
    attributes->preferred_carveout = -1;
    return kSuccess;
  });
}

SIMGPU_API Error cudaFuncSetAttribute(const void*, int, int) {
  return runtime_call(__func__, []() -> Error { return kSuccess; });
}

SIMGPU_API Error cudaFuncSetCacheConfig(const void*, int) {
  return runtime_call(__func__, []() -> Error { return kSuccess; });
}

SIMGPU_API Error cudaKernelSetAttributeForDevice(void*, int, int, int) {
  return runtime_call(__func__, []() -> Error { return kSuccess; });
}

SIMGPU_API Error cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int threads,
                                                               size_t) {
  return runtime_call(__func__, [&]() -> Error {
    *blocks = blocks_per_multiprocessor(threads);
    return kSuccess;
  });
}

SIMGPU_API Error cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int threads,
                                                                        size_t, unsigned) {
  return runtime_call(__func__, [&]() -> Error {
    *blocks = blocks_per_multiprocessor(threads);
    return kSuccess;
  });
}

SIMGPU_API Error cudaOccupancyMaxActiveClusters(int* clusters, const void*, const void*) {
  return runtime_call(__func__, [&]() -> Error {
    *clusters = profile::kActiveClusters;
    return kSuccess;
  });
}

SIMGPU_API Error cudaOccupancyMaxPotentialClusterSize(int* size, const void*, const void*) {
  return runtime_call(__func__, [&]() -> Error {
    *size = profile::kClusterSize;
    return kSuccess;
  });
}

SIMGPU_API Error cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void*, int, int) {
  return runtime_call(__func__, [&]() -> Error {
    *bytes = profile::kSharedPerBlock;
    return kSuccess;
  });
}
