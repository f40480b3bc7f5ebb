#include "simgpu/core/ledger.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "simgpu/core/context.h"
#include "simgpu/core/machine.h"
#include "simgpu/core/settings.h"

namespace simgpu {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

struct Usage {
  size_t bytes = 0;
  size_t peak = 0;
};

struct Ledger {
  std::mutex mutex;
  std::array<Usage, kMaxDevices> usage;
  std::map<uintptr_t, Block> blocks;  // by base
  uint64_t next_id = 1;
};

// Never destroyed: operations on stream workers may outlive static destructors.
Ledger& ledger() {
  static Ledger* const kLedger = new Ledger;
  return *kLedger;
}

// The block that contains the address; the ledger's mutex is held.
const Block* block_at(const Ledger& ledger, uintptr_t address) {
  auto after = ledger.blocks.upper_bound(address);
  if (after == ledger.blocks.begin()) return nullptr;
  const Block& block = std::prev(after)->second;
  return address - block.base < block.bytes ? &block : nullptr;
}

}  // namespace

Error reserve_bytes(int device, size_t bytes) {
  std::lock_guard<std::mutex> lock(ledger().mutex);
  Usage& usage = ledger().usage[static_cast<size_t>(device)];
  if (!machine::take(physical_device(device), bytes)) return kOutOfMemory;
  usage.bytes += bytes;
  usage.peak = std::max(usage.peak, usage.bytes);
  return kSuccess;
}

void release_bytes(int device, size_t bytes) {
  std::lock_guard<std::mutex> lock(ledger().mutex);
  Usage& usage = ledger().usage[static_cast<size_t>(device)];
  const size_t given = std::min(bytes, usage.bytes);
  usage.bytes -= given;
  machine::give(physical_device(device), given);
}

void memory_info(int device, size_t* free_bytes, size_t* total_bytes) {
  *total_bytes = device_bytes(physical_device(device));
  *free_bytes = *total_bytes - std::min(*total_bytes, machine::used(physical_device(device)));
}

size_t peak_bytes(int device) {
  std::lock_guard<std::mutex> lock(ledger().mutex);
  return ledger().usage[static_cast<size_t>(device)].peak;
}

void add_block(const void* base, size_t bytes, int device, MemoryKind kind) {
  std::lock_guard<std::mutex> lock(ledger().mutex);
  const uintptr_t address = reinterpret_cast<uintptr_t>(base);
  ledger().blocks[address] = Block{address, bytes, device, kind, ledger().next_id++};
}

bool remove_block(const void* base, Block* removed) {
  std::lock_guard<std::mutex> lock(ledger().mutex);
  auto found = ledger().blocks.find(reinterpret_cast<uintptr_t>(base));
  if (found == ledger().blocks.end()) return false;
  if (removed != nullptr) *removed = found->second;
  ledger().blocks.erase(found);
  return true;
}

bool find_block(const void* address, Block* found) {
  std::lock_guard<std::mutex> lock(ledger().mutex);
  const Block* block = block_at(ledger(), reinterpret_cast<uintptr_t>(address));
  if (block == nullptr) return false;
  if (found != nullptr) *found = *block;
  return true;
}

size_t block_bytes(int device, MemoryKind kind) {
  std::lock_guard<std::mutex> lock(ledger().mutex);
  size_t bytes = 0;
  for (const auto& [base, block] : ledger().blocks) {
    if (block.device == device && block.kind == kind) bytes += block.bytes;
  }
  return bytes;
}

bool covered(const void* address, size_t bytes) {
  std::lock_guard<std::mutex> lock(ledger().mutex);
  uintptr_t at = reinterpret_cast<uintptr_t>(address);
  while (true) {
    const Block* block = block_at(ledger(), at);
    if (block == nullptr) return false;
    const size_t here = block->base + block->bytes - at;
    if (bytes <= here) return true;
    bytes -= here;
    at += here;
  }
}

void* map_pages(size_t bytes, bool accessible) {
  const int protection = accessible ? PROT_READ | PROT_WRITE : PROT_NONE;
  const size_t mapped_bytes = bytes + kHugePage;
  void* mapped = mmap(nullptr, mapped_bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  const uintptr_t start = reinterpret_cast<uintptr_t>(mapped);
  const uintptr_t base = (start + kHugePage - 1) & ~(kHugePage - 1);
  if (base > start) munmap(mapped, base - start);
  const size_t tail = start + mapped_bytes - (base + bytes);
  if (tail > 0) munmap(reinterpret_cast<void*>(base + bytes), tail);
  // A huge page would make 2 MiB real at the first byte written.
  madvise(reinterpret_cast<void*>(base), bytes, MADV_NOHUGEPAGE);
  return reinterpret_cast<void*>(base);
}

void unmap_pages(void* base, size_t bytes) { munmap(base, bytes); }

}  // namespace simgpu
