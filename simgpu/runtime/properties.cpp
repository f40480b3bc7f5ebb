// cudaGetDeviceProperties.
#include <cstdio>
#include <cstring>

#include "simgpu/core/call.h"
#include "simgpu/core/profile.h"
#include "simgpu/core/settings.h"

using namespace simgpu;

namespace {

// cudaDeviceProp of CUDA 13.0 (driver_types.h), field by field; the extents of textures and surfaces are one
// array.
struct DeviceProperties {
  char name[256];
  unsigned char uuid[16];
  char luid[8];
  unsigned luid_device_node_mask;
  size_t total_global_mem;
  size_t shared_mem_per_block;
  int regs_per_block;
  int warp_size;
  size_t mem_pitch;
  int max_threads_per_block;
  int max_threads_dim[3];
  int max_grid_size[3];
  size_t total_const_mem;
  int major;
  int minor;
  size_t texture_alignment;
  size_t texture_pitch_alignment;
  int multi_processor_count;
  int integrated;
  int can_map_host_memory;
  int texture_extents[39];  // maxTexture1D .. maxSurfaceCubemapLayered
  size_t surface_alignment;
  int concurrent_kernels;
  int ecc_enabled;
  int pci_bus_id;
  int pci_device_id;
  int pci_domain_id;
  int tcc_driver;
  int async_engine_count;
  int unified_addressing;
  int memory_bus_width;
  int l2_cache_size;
  int persisting_l2_cache_max_size;
  int max_threads_per_multi_processor;
  int stream_priorities_supported;
  int global_l1_cache_supported;
  int local_l1_cache_supported;
  size_t shared_mem_per_multiprocessor;
  int regs_per_multiprocessor;
  int managed_memory;
  int is_multi_gpu_board;
  int multi_gpu_board_group_id;
  int host_native_atomic_supported;
  int pageable_memory_access;
  int concurrent_managed_access;
  int compute_preemption_supported;
  int can_use_host_pointer_for_registered_mem;
  int cooperative_launch;
  size_t shared_mem_per_block_optin;
  int pageable_memory_access_uses_host_page_tables;
  int direct_managed_mem_access_from_host;
  int max_blocks_per_multi_processor;
  int access_policy_max_window_size;
  size_t reserved_shared_mem_per_block;
  int host_register_supported;
  int sparse_cuda_array_supported;
  int host_register_read_only_supported;
  int timeline_semaphore_interop_supported;
  int memory_pools_supported;
  int gpu_direct_rdma_supported;
  unsigned gpu_direct_rdma_flush_writes_options;
  int gpu_direct_rdma_writes_ordering;
  unsigned memory_pool_supported_handle_types;
  int deferred_mapping_cuda_array_supported;
  int ipc_event_supported;
  int cluster_launch;
  int unified_function_pointers;
  int device_numa_config;
  int device_numa_id;
  int mps_enabled;
  int host_numa_id;
  unsigned gpu_pci_device_id;
  unsigned gpu_pci_subsystem_id;
  int host_numa_multinode_ipc_supported;
  int reserved[56];
};

static_assert(sizeof(DeviceProperties) == 1008, "size of cudaDeviceProp in CUDA 13.0");

DeviceProperties properties_of(int physical) {
  using namespace profile;
  DeviceProperties p;
  std::memset(&p, 0, sizeof p);
  std::snprintf(p.name, sizeof p.name, "%s", kName);
  for (int i = 0; i < 16; ++i) p.uuid[i] = uuid_byte(physical, i);
  p.total_global_mem = device_bytes(physical);
  p.shared_mem_per_block = kSharedPerBlock;
  p.regs_per_block = kRegisters;
  p.warp_size = kWarpSize;
  p.mem_pitch = kMaxPitch;
  p.max_threads_per_block = kThreadsPerBlock;
  p.max_threads_dim[0] = kThreadsPerBlock;
  p.max_threads_dim[1] = kThreadsPerBlock;
  p.max_threads_dim[2] = kBlockDimZ;
  p.max_grid_size[0] = kGridDimX;
  p.max_grid_size[1] = kGridDimYZ;
  p.max_grid_size[2] = kGridDimYZ;
  p.total_const_mem = kConstantBytes;
  p.major = kMajor;
  p.minor = kMinor;
  p.texture_alignment = kTextureAlignment;
  p.texture_pitch_alignment = kTexturePitchAlignment;
  p.multi_processor_count = kMultiprocessors;
  p.can_map_host_memory = 1;
  for (int& extent : p.texture_extents) extent = kTextureExtent;
  p.surface_alignment = kTextureAlignment;
  p.concurrent_kernels = 1;
  p.ecc_enabled = 1;
  p.pci_bus_id = pci_bus(physical);
  p.async_engine_count = kCopyEngines;
  p.unified_addressing = 1;
  p.memory_bus_width = kMemoryBusBits;
  p.l2_cache_size = kL2Bytes;
  p.persisting_l2_cache_max_size = kPersistingL2Bytes;
  p.max_threads_per_multi_processor = kThreadsPerMultiprocessor;
  p.stream_priorities_supported = 1;
  p.global_l1_cache_supported = 1;
  p.local_l1_cache_supported = 1;
  p.shared_mem_per_multiprocessor = kSharedPerMultiprocessor;
  p.regs_per_multiprocessor = kRegisters;
  p.managed_memory = 1;
  p.multi_gpu_board_group_id = physical;
  p.concurrent_managed_access = 1;
  p.compute_preemption_supported = 1;
  p.can_use_host_pointer_for_registered_mem = 1;
  p.cooperative_launch = 1;
  p.shared_mem_per_block_optin = kSharedPerBlockOptin;
  p.max_blocks_per_multi_processor = kBlocksPerMultiprocessor;
  p.access_policy_max_window_size = kAccessWindowBytes;
  p.reserved_shared_mem_per_block = kSharedReservedPerBlock;
  p.host_register_supported = 1;
  p.memory_pools_supported = 1;
  p.cluster_launch = 1;
  p.device_numa_id = -1;
  return p;
}

}  // namespace

SIMGPU_API Error cudaGetDeviceProperties(DeviceProperties* properties, int ordinal) {
  return runtime_query(__func__, [&]() -> Error {
    if (!valid_device(ordinal)) return kInvalidDevice;
    *properties = properties_of(physical_device(ordinal));
    return kSuccess;
  });
}
