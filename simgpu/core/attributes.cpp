#include "simgpu/core/attributes.h"

#include "simgpu/core/context.h"
#include "simgpu/core/log.h"
#include "simgpu/core/profile.h"

namespace simgpu {
namespace {

using namespace profile;

struct Attribute {
  int number;
  int value;
};

// Numbers: CUdevice_attribute in cuda.h of CUDA 13.0.
constexpr Attribute kAttributes[] = {
    {1, kThreadsPerBlock},
    {2, kThreadsPerBlock},            // MAX_BLOCK_DIM_X
    {3, kThreadsPerBlock},            // MAX_BLOCK_DIM_Y
    {4, kBlockDimZ},                  // MAX_BLOCK_DIM_Z
    {5, kGridDimX},                   // MAX_GRID_DIM_X
    {6, kGridDimYZ},                  // MAX_GRID_DIM_Y
    {7, kGridDimYZ},                  // MAX_GRID_DIM_Z
    {8, kSharedPerBlock},             // MAX_SHARED_MEMORY_PER_BLOCK
    {9, kConstantBytes},              // TOTAL_CONSTANT_MEMORY
    {10, kWarpSize},                  // WARP_SIZE
    {11, kMaxPitch},                  // MAX_PITCH
    {12, kRegisters},                 // MAX_REGISTERS_PER_BLOCK
    {13, kClockKhz},                  // CLOCK_RATE
    {14, kTextureAlignment},          // TEXTURE_ALIGNMENT
    {15, 1},                          // GPU_OVERLAP
    {16, kMultiprocessors},           // MULTIPROCESSOR_COUNT
    {17, 0},                          // KERNEL_EXEC_TIMEOUT
    {18, 0},                          // INTEGRATED
    {19, 1},                          // CAN_MAP_HOST_MEMORY
    {20, 0},                          // COMPUTE_MODE: default
    {30, kTextureAlignment},          // SURFACE_ALIGNMENT
    {31, 1},                          // CONCURRENT_KERNELS
    {32, 1},                          // ECC_ENABLED
    {34, 0},                          // PCI_DEVICE_ID
    {35, 0},                          // TCC_DRIVER
    {36, kMemoryClockKhz},            // MEMORY_CLOCK_RATE
    {37, kMemoryBusBits},             // GLOBAL_MEMORY_BUS_WIDTH
    {38, kL2Bytes},                   // L2_CACHE_SIZE
    {39, kThreadsPerMultiprocessor},  // MAX_THREADS_PER_MULTIPROCESSOR
    {40, kCopyEngines},               // ASYNC_ENGINE_COUNT
    {41, 1},                          // UNIFIED_ADDRESSING
    {50, 0},                          // PCI_DOMAIN_ID
    {51, kTexturePitchAlignment},     // TEXTURE_PITCH_ALIGNMENT
    {75, kMajor},                     // COMPUTE_CAPABILITY_MAJOR
    {76, kMinor},                     // COMPUTE_CAPABILITY_MINOR
    {78, 1},                          // STREAM_PRIORITIES_SUPPORTED
    {79, 1},                          // GLOBAL_L1_CACHE_SUPPORTED
    {80, 1},                          // LOCAL_L1_CACHE_SUPPORTED
    {81, kSharedPerMultiprocessor},   // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
    {82, kRegisters},                 // MAX_REGISTERS_PER_MULTIPROCESSOR
    {83, 1},                          // MANAGED_MEMORY
    {84, 0},                          // MULTI_GPU_BOARD
    {86, 0},                          // HOST_NATIVE_ATOMIC_SUPPORTED
    {87, 2},                          // SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO
    {88, 0},                          // PAGEABLE_MEMORY_ACCESS
    {89, 1},                          // CONCURRENT_MANAGED_ACCESS
    {90, 1},                          // COMPUTE_PREEMPTION_SUPPORTED
    {91, 1},                          // CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
    {95, 1},                          // COOPERATIVE_LAUNCH
    {97, kSharedPerBlockOptin},       // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    {98, 1},                          // CAN_FLUSH_REMOTE_WRITES
    {99, 1},                          // HOST_REGISTER_SUPPORTED
    {100, 0},                         // PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES
    {101, 0},                         // DIRECT_MANAGED_MEM_ACCESS_FROM_HOST
    {102, 1},                         // VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
    {103, 0},  // HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED: memory cannot be exported
    {106, kBlocksPerMultiprocessor},  // MAX_BLOCKS_PER_MULTIPROCESSOR
    {108, kPersistingL2Bytes},        // MAX_PERSISTING_L2_CACHE_SIZE
    {109, kAccessWindowBytes},        // MAX_ACCESS_POLICY_WINDOW_SIZE
    {110, 0},                         // GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED
    {111, kSharedReservedPerBlock},   // RESERVED_SHARED_MEMORY_PER_BLOCK
    {115, 1},                         // MEMORY_POOLS_SUPPORTED
    {116, 0},                         // GPU_DIRECT_RDMA_SUPPORTED
    {119, 0},                         // MEMPOOL_SUPPORTED_HANDLE_TYPES
    {120, 1},                         // CLUSTER_LAUNCH
    {122, 1},                         // CAN_USE_64_BIT_STREAM_MEM_OPS
    {124, 0},                         // DMA_BUF_SUPPORTED
    {125, 0},                         // IPC_EVENT_SUPPORTED
    {127, 1},                         // TENSOR_MAP_ACCESS_SUPPORTED
    {128, 0},                         // HANDLE_TYPE_FABRIC_SUPPORTED
    {130, 0},                         // NUMA_CONFIG: none
    {131, -1},                        // NUMA_ID
    {132, 0},                         // MULTICAST_SUPPORTED
    {133, 0},                         // MPS_ENABLED
    {134, 0},                         // HOST_NUMA_ID
};

constexpr int kPciBusId = 33;
constexpr int kMultiGpuBoardGroupId = 85;

// 21..29, 42..74: extents of textures and surfaces.
constexpr bool is_extent(int number) {
  return (number >= 21 && number <= 29) || (number >= 42 && number <= 77);
}

}  // namespace

int device_attribute(int attribute, int device) {
  if (attribute == kPciBusId) return pci_bus(physical_device(device));
  if (attribute == kMultiGpuBoardGroupId) return physical_device(device);
  for (const Attribute& row : kAttributes) {
    if (row.number == attribute) return row.value;
  }
  if (is_extent(attribute)) return kTextureExtent;
  log(1, "device attribute %d is unknown; 0 is returned", attribute);
  return 0;
}

}  // namespace simgpu
