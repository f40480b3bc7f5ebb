#include "simgpu/core/allocation.h"

#include <sys/mman.h>

#include <chrono>
#include <thread>

#include "simgpu/core/context.h"
#include "simgpu/core/log.h"
#include "simgpu/core/settings.h"
#include "simgpu/core/stream.h"

namespace simgpu {
namespace {

size_t whole_pages(size_t bytes) { return (bytes + kPageBytes - 1) & ~(kPageBytes - 1); }

void take_alloc_time() {
  if (settings().alloc_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(settings().alloc_us));
}

bool freed_by_cuda_free(MemoryKind kind) {
  return kind == MemoryKind::kDevice || kind == MemoryKind::kPool || kind == MemoryKind::kManaged;
}

// Takes the block out of the ledger if it begins at the address and its kind passes.
template <class Accept>
Error take_block(void* address, Block* block, Accept accept) {
  if (!find_block(address, block) || block->base != reinterpret_cast<uintptr_t>(address))
    return kInvalidValue;
  if (!accept(block->kind)) return kInvalidValue;
  return remove_block(address, block) ? kSuccess : kInvalidValue;
}

void give_back(const Block& block) {
  unmap_pages(reinterpret_cast<void*>(block.base), block.bytes);
  release_bytes(block.device, block.bytes);
}

}  // namespace

Error allocate_device(size_t bytes, MemoryKind kind, void** address) {
  *address = nullptr;
  if (bytes == 0) return kSuccess;
  take_alloc_time();
  const size_t rounded = whole_pages(bytes);
  if (rounded < bytes) return kOutOfMemory;
  if (Error error = reserve_bytes(device(), rounded)) return error;
  void* pages = map_pages(rounded, true);
  if (pages == nullptr) {
    release_bytes(device(), rounded);
    return kOutOfMemory;
  }
  add_block(pages, rounded, device(), kind);
  *address = pages;
  return kSuccess;
}

Error free_device(void* address) {
  if (address == nullptr) return kSuccess;
  Block block;
  if (!find_block(address, &block) || !freed_by_cuda_free(block.kind)) return kInvalidValue;
  take_alloc_time();
  drain_device(block.device);
  if (Error error = take_block(address, &block, freed_by_cuda_free)) return error;
  give_back(block);
  return kSuccess;
}

Error allocate_host(size_t bytes, void** address) {
  *address = nullptr;
  if (bytes == 0) return kSuccess;
  const size_t rounded = whole_pages(bytes);
  void* pages =
      mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return kOutOfMemory;
  add_block(pages, rounded, device(), MemoryKind::kHost);
  *address = pages;
  return kSuccess;
}

Error free_host(void* address) {
  if (address == nullptr) return kSuccess;
  Block block;
  if (!find_block(address, &block) || block.kind != MemoryKind::kHost) return kInvalidValue;
  drain_device(block.device);
  if (Error error = take_block(address, &block, [](MemoryKind kind) { return kind == MemoryKind::kHost; }))
    return error;
  munmap(address, block.bytes);
  return kSuccess;
}

Error allocate_from_pool(size_t bytes, void* stream, void** address) {
  if (is_capturing(stream)) {
    unsupported("allocation on a capturing stream");
    return kNotSupported;
  }
  return allocate_device(bytes, MemoryKind::kPool, address);
}

Error free_on_stream(void* address, void* stream) {
  if (address == nullptr) return kSuccess;
  if (is_capturing(stream)) {
    unsupported("freeing on a capturing stream");
    return kNotSupported;
  }
  Block block;
  const auto accept = [](MemoryKind kind) {
    return kind == MemoryKind::kPool || kind == MemoryKind::kDevice;
  };
  if (!find_block(address, &block) || !accept(block.kind)) return kInvalidValue;
  // The addresses stay known until the stream gets there: work queued before may still use them.
  return enqueue(
      stream,
      [address, accept] {
        Block freed;
        if (take_block(address, &freed, accept) == kSuccess) give_back(freed);
      },
      Run::kInlineIfIdle);
}

}  // namespace simgpu
