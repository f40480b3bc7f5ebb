// Device memory: how much of each device is taken, and which addresses belong to whom. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simgpu/core/abi.h"

namespace simgpu {

// --- accounting ----------------------------------------------------------------------------------

// Takes bytes of a device. kOutOfMemory if so much is not free on the machine; nothing is taken then.
Error reserve_bytes(int device, size_t bytes);
void release_bytes(int device, size_t bytes);
void memory_info(int device, size_t* free_bytes, size_t* total_bytes);
size_t peak_bytes(int device);

// --- addresses -----------------------------------------------------------------------------------

enum class MemoryKind {
  kDevice,      // cudaMalloc
  kPool,        // cudaMallocAsync
  kManaged,     // cudaMallocManaged
  kMapped,      // cuMemMap: accounted to its physical handle, not to the mapping
  kSymbol,      // a __device__ variable: memory of the program's image
  kHost,        // cudaHostAlloc, cudaMallocHost
  kRegistered,  // cudaHostRegister: memory of the program
};

struct Block {
  uintptr_t base;
  size_t bytes;
  int device;
  MemoryKind kind;
  uint64_t id;  // unique in the process (CU_POINTER_ATTRIBUTE_BUFFER_ID)

  bool on_device() const { return kind != MemoryKind::kHost && kind != MemoryKind::kRegistered; }
};

void add_block(const void* base, size_t bytes, int device, MemoryKind kind);
bool remove_block(const void* base, Block* removed);  // false: no block begins there
bool find_block(const void* address, Block* found);   // the block that contains it

size_t block_bytes(int device, MemoryKind kind);  // of all blocks of this kind

// Whether [address, address + bytes) lies in blocks without a gap (neighbouring mappings of one reservation
// count as one).
bool covered(const void* address, size_t bytes);

// --- pages ---------------------------------------------------------------------------------------

// Address space aligned to 2 MiB, untouched and not committed; nullptr if there is none. `bytes` is a
// multiple of kPageBytes.
inline constexpr size_t kPageBytes = 4096;
void* map_pages(size_t bytes, bool accessible);
void unmap_pages(void* base, size_t bytes);

}  // namespace simgpu
