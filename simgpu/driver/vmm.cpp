// Virtual memory management: addresses are reserved, physical memory is created, and the one is mapped to the
// other. PyTorch's expandable segments are made of it. Physical memory counts against its device from
// creation until it is released and no longer mapped.
#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "simgpu/core/call.h"
#include "simgpu/core/ledger.h"
#include "simgpu/core/stream.h"

using namespace simgpu;

namespace {

using DevicePointer = unsigned long long;
using MemoryHandle = unsigned long long;

constexpr size_t kGranularity = size_t{2} << 20;

// The beginning of CUmemAllocationProp (cuda.h).
struct AllocationProperties {
  int type;
  int requested_handle_types;
  int location_type;
  int location_id;
};

constexpr int kPinned = 1;          // CU_MEM_ALLOCATION_TYPE_PINNED
constexpr int kLocationDevice = 1;  // CU_MEM_LOCATION_TYPE_DEVICE
constexpr int kPosixHandle = 1;     // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

struct Physical {
  size_t bytes;
  int device;
  int mappings;
  int references;  // cuMemCreate and cuMemRetainAllocationHandle
};

struct Mapping {
  size_t bytes;
  MemoryHandle handle;
};

struct Virtual {
  std::mutex mutex;
  std::map<MemoryHandle, Physical> physical;
  std::map<DevicePointer, size_t> reservations;
  std::map<DevicePointer, Mapping> mappings;
  MemoryHandle next_handle = 1;
};

Virtual& memory() {
  static Virtual* const kMemory = new Virtual;
  return *kMemory;
}

void* pointer(DevicePointer address) { return reinterpret_cast<void*>(address); }

// The mutex is held in these.

void drop_if_unused(MemoryHandle handle) {
  const auto found = memory().physical.find(handle);
  if (found == memory().physical.end()) return;
  if (found->second.references > 0 || found->second.mappings > 0) return;
  release_bytes(found->second.device, found->second.bytes);
  memory().physical.erase(found);
}

bool reserved(DevicePointer address, size_t bytes) {
  auto after = memory().reservations.upper_bound(address);
  if (after == memory().reservations.begin()) return false;
  const auto& [base, length] = *std::prev(after);
  return address - base <= length && bytes <= length - (address - base);
}

bool any_mapping_in(DevicePointer address, size_t bytes) {
  const auto next = memory().mappings.lower_bound(address);
  if (next != memory().mappings.end() && next->first < address + bytes) return true;
  if (next == memory().mappings.begin()) return false;
  const auto& [base, mapping] = *std::prev(next);
  return base + mapping.bytes > address;
}

// The mapping that contains the address.
const Mapping* mapping_at(DevicePointer address) {
  auto after = memory().mappings.upper_bound(address);
  if (after == memory().mappings.begin()) return nullptr;
  const auto& [base, mapping] = *std::prev(after);
  return address - base < mapping.bytes ? &mapping : nullptr;
}

}  // namespace

SIMGPU_API Error cuMemGetAllocationGranularity(size_t* granularity, const void*, int) {
  return driver_query(__func__, [&]() -> Error {
    *granularity = kGranularity;
    return kSuccess;
  });
}

SIMGPU_API Error cuMemAddressReserve(DevicePointer* address, size_t bytes, size_t, DevicePointer,
                                     unsigned long long flags) {
  return driver_query(__func__, [&]() -> Error {
    if (address == nullptr || bytes == 0 || bytes % kGranularity != 0 || flags != 0) return kInvalidValue;
    void* pages = map_pages(bytes, false);
    if (pages == nullptr) return kOutOfMemory;
    *address = reinterpret_cast<DevicePointer>(pages);
    std::lock_guard<std::mutex> lock(memory().mutex);
    memory().reservations[*address] = bytes;
    return kSuccess;
  });
}

SIMGPU_API Error cuMemAddressFree(DevicePointer address, size_t bytes) {
  return driver_query(__func__, [&]() -> Error {
    std::lock_guard<std::mutex> lock(memory().mutex);
    const auto found = memory().reservations.find(address);
    if (found == memory().reservations.end() || found->second != bytes) return kInvalidValue;
    if (any_mapping_in(address, bytes)) return kInvalidValue;
    memory().reservations.erase(found);
    unmap_pages(pointer(address), bytes);
    return kSuccess;
  });
}

SIMGPU_API Error cuMemCreate(MemoryHandle* handle, size_t bytes, const AllocationProperties* properties,
                             unsigned long long flags) {
  return driver_query(__func__, [&]() -> Error {
    if (handle == nullptr || properties == nullptr || flags != 0) return kInvalidValue;
    if (bytes == 0 || bytes % kGranularity != 0 || properties->type != kPinned) return kInvalidValue;
    // PyTorch asks for a file descriptor in case it will be shared; only its export is refused then.
    if (properties->location_type != kLocationDevice ||
        (properties->requested_handle_types & ~kPosixHandle) != 0) {
      unsupported("cuMemCreate of memory that is not a device's, or with this kind of handle");
      return kNotSupported;
    }
    if (!valid_device(properties->location_id)) return kInvalidDevice;
    if (Error error = reserve_bytes(properties->location_id, bytes)) return error;
    std::lock_guard<std::mutex> lock(memory().mutex);
    *handle = memory().next_handle++;
    memory().physical[*handle] = Physical{bytes, properties->location_id, 0, 1};
    return kSuccess;
  });
}

SIMGPU_API Error cuMemRelease(MemoryHandle handle) {
  return driver_query(__func__, [&]() -> Error {
    std::lock_guard<std::mutex> lock(memory().mutex);
    const auto found = memory().physical.find(handle);
    if (found == memory().physical.end() || found->second.references == 0) return kInvalidValue;
    --found->second.references;
    drop_if_unused(handle);
    return kSuccess;
  });
}

SIMGPU_API Error cuMemRetainAllocationHandle(MemoryHandle* handle, void* address) {
  return driver_query(__func__, [&]() -> Error {
    std::lock_guard<std::mutex> lock(memory().mutex);
    const Mapping* mapping = mapping_at(reinterpret_cast<DevicePointer>(address));
    if (mapping == nullptr) return kInvalidValue;
    *handle = mapping->handle;
    ++memory().physical[mapping->handle].references;
    return kSuccess;
  });
}

SIMGPU_API Error cuMemMap(DevicePointer address, size_t bytes, size_t offset, MemoryHandle handle,
                          unsigned long long flags) {
  return driver_query(__func__, [&]() -> Error {
    std::lock_guard<std::mutex> lock(memory().mutex);
    const auto found = memory().physical.find(handle);
    if (found == memory().physical.end() || flags != 0 || offset != 0) return kInvalidValue;
    if (bytes != found->second.bytes || address % kGranularity != 0) return kInvalidValue;
    if (!reserved(address, bytes) || any_mapping_in(address, bytes)) return kInvalidValue;
    if (found->second.mappings > 0) {
      unsupported("cuMemMap of memory that is mapped already");  // both would have to show the same bytes
      return kNotSupported;
    }
    ++found->second.mappings;
    memory().mappings[address] = Mapping{bytes, handle};
    add_block(pointer(address), bytes, found->second.device, MemoryKind::kMapped);
    return kSuccess;
  });
}

// Access is given as a whole: to all devices, for reading and writing. Without it the pages cannot be
// touched.
SIMGPU_API Error cuMemSetAccess(DevicePointer address, size_t bytes, const void* descriptors, size_t count) {
  return driver_query(__func__, [&]() -> Error {
    if (descriptors == nullptr || count == 0 || !covered(pointer(address), bytes)) return kInvalidValue;
    return mprotect(pointer(address), bytes, PROT_READ | PROT_WRITE) == 0 ? kSuccess : kInvalidValue;
  });
}

SIMGPU_API Error cuMemUnmap(DevicePointer address, size_t bytes) {
  return driver_query(__func__, [&]() -> Error {
    Block block;
    if (!find_block(pointer(address), &block) || !covered(pointer(address), bytes)) return kInvalidValue;
    drain_device(block.device);
    std::lock_guard<std::mutex> lock(memory().mutex);
    auto at = memory().mappings.find(address);
    if (at == memory().mappings.end()) return kInvalidValue;
    while (at != memory().mappings.end() && at->first < address + bytes) {
      const MemoryHandle handle = at->second.handle;
      remove_block(pointer(at->first), nullptr);
      at = memory().mappings.erase(at);
      --memory().physical[handle].mappings;
      drop_if_unused(handle);
    }
    madvise(pointer(address), bytes, MADV_DONTNEED);
    mprotect(pointer(address), bytes, PROT_NONE);
    return kSuccess;
  });
}

SIMGPU_API Error cuMemGetAllocationPropertiesFromHandle(AllocationProperties* properties,
                                                        MemoryHandle handle) {
  return driver_query(__func__, [&]() -> Error {
    constexpr size_t kPropertiesBytes = 32;  // sizeof(CUmemAllocationProp)
    std::lock_guard<std::mutex> lock(memory().mutex);
    const auto found = memory().physical.find(handle);
    if (found == memory().physical.end()) return kInvalidValue;
    std::fill_n(reinterpret_cast<char*>(properties), kPropertiesBytes, 0);
    *properties = AllocationProperties{kPinned, 0, kLocationDevice, found->second.device};
    return kSuccess;
  });
}
