// Memory pools and stream-ordered allocation. A pool keeps nothing: what is freed goes back to the device
// when the stream gets there, as with a release threshold of 0.
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>

#include "simgpu/core/allocation.h"
#include "simgpu/core/call.h"
#include "simgpu/core/context.h"
#include "simgpu/core/registry.h"

using namespace simgpu;

namespace {

// cudaMemPoolAttr (driver_types.h): 1..3 are ints, the others 64 bits.
enum PoolAttribute : int {
  kReuseFollowEventDependencies = 1,
  kReuseAllowInternalDependencies = 3,
  kReleaseThreshold = 4,
  kReservedCurrent = 5,
  kReservedHigh = 6,
  kUsedCurrent = 7,
  kUsedHigh = 8,
};

struct Pool {
  explicit Pool(int on_device) : device(on_device) {}

  const int device;
  std::mutex mutex;
  uint64_t release_threshold = 0;
  std::array<int, 3> reuse = {1, 1, 1};
};

Registry<Pool>& pools() {
  static Registry<Pool>* const kPools = new Registry<Pool>;
  return *kPools;
}

struct DefaultPools {
  std::mutex mutex;
  std::array<void*, kMaxDevices> handles{};
  std::array<void*, kMaxDevices> current{};
};

DefaultPools& defaults() {
  static DefaultPools* const kDefaults = new DefaultPools;
  return *kDefaults;
}

// The mutex of defaults() is held.
void* default_pool(int device) {
  void*& handle = defaults().handles[static_cast<size_t>(device)];
  if (handle == nullptr) handle = pools().add(std::make_shared<Pool>(device));
  return handle;
}

// Bytes of pool memory of a device in use: what is taken of it stands in the ledger.
uint64_t used_bytes(int device) { return block_bytes(device, MemoryKind::kPool); }

}  // namespace

SIMGPU_API Error cudaMallocAsync(void** address, size_t bytes, void* stream) {
  return runtime_call(__func__, [&]() -> Error {
    if (address == nullptr) return kInvalidValue;
    return allocate_from_pool(bytes, stream, address);
  });
}

SIMGPU_API Error cudaMallocFromPoolAsync(void** address, size_t bytes, void* pool_handle, void* stream) {
  return runtime_call(__func__, [&]() -> Error {
    const std::shared_ptr<Pool> pool = pools().find(pool_handle);
    if (address == nullptr || pool == nullptr) return kInvalidValue;
    DeviceScope scope(pool->device);
    return allocate_from_pool(bytes, stream, address);
  });
}

SIMGPU_API Error cudaFreeAsync(void* address, void* stream) {
  return runtime_call(__func__, [&]() -> Error { return free_on_stream(address, stream); });
}

// --- pools ---------------------------------------------------------------------------------------

SIMGPU_API Error cudaDeviceGetDefaultMemPool(void** pool, int ordinal) {
  return runtime_query(__func__, [&]() -> Error {
    if (!valid_device(ordinal)) return kInvalidDevice;
    std::lock_guard<std::mutex> lock(defaults().mutex);
    *pool = default_pool(ordinal);
    return kSuccess;
  });
}

SIMGPU_API Error cudaDeviceGetMemPool(void** pool, int ordinal) {
  return runtime_query(__func__, [&]() -> Error {
    if (!valid_device(ordinal)) return kInvalidDevice;
    std::lock_guard<std::mutex> lock(defaults().mutex);
    void* current = defaults().current[static_cast<size_t>(ordinal)];
    *pool = current != nullptr ? current : default_pool(ordinal);
    return kSuccess;
  });
}

SIMGPU_API Error cudaDeviceSetMemPool(int ordinal, void* pool) {
  return runtime_query(__func__, [&]() -> Error {
    if (!valid_device(ordinal)) return kInvalidDevice;
    if (pools().find(pool) == nullptr) return kInvalidValue;
    std::lock_guard<std::mutex> lock(defaults().mutex);
    defaults().current[static_cast<size_t>(ordinal)] = pool;
    return kSuccess;
  });
}

// cudaMemPoolProps: allocType, handleTypes, location {type, id}, ...
SIMGPU_API Error cudaMemPoolCreate(void** pool, const int* properties) {
  return runtime_query(__func__, [&]() -> Error {
    constexpr int kLocationId = 3;
    if (pool == nullptr || properties == nullptr) return kInvalidValue;
    const int ordinal = properties[kLocationId];
    if (!valid_device(ordinal)) return kInvalidDevice;
    *pool = pools().add(std::make_shared<Pool>(ordinal));
    return kSuccess;
  });
}

SIMGPU_API Error cudaMemPoolDestroy(void* pool) {
  return runtime_query(__func__,
                       [&]() -> Error { return pools().remove(pool) != nullptr ? kSuccess : kInvalidValue; });
}

SIMGPU_API Error cudaMemPoolTrimTo(void* pool, size_t) {
  return runtime_query(__func__,
                       [&]() -> Error { return pools().find(pool) != nullptr ? kSuccess : kInvalidValue; });
}

SIMGPU_API Error cudaMemPoolSetAccess(void* pool, const void*, size_t) {
  return runtime_query(__func__,
                       [&]() -> Error { return pools().find(pool) != nullptr ? kSuccess : kInvalidValue; });
}

SIMGPU_API Error cudaMemPoolSetAttribute(void* pool_handle, int attribute, void* value) {
  return runtime_query(__func__, [&]() -> Error {
    const std::shared_ptr<Pool> pool = pools().find(pool_handle);
    if (pool == nullptr || value == nullptr) return kInvalidValue;
    std::lock_guard<std::mutex> lock(pool->mutex);
    if (attribute >= kReuseFollowEventDependencies && attribute <= kReuseAllowInternalDependencies) {
      pool->reuse[static_cast<size_t>(attribute - 1)] = *static_cast<const int*>(value);
      return kSuccess;
    }
    if (attribute == kReleaseThreshold) {
      pool->release_threshold = *static_cast<const uint64_t*>(value);
      return kSuccess;
    }
    // The high marks may only be set back to 0; they follow the present use here.
    return attribute == kReservedHigh || attribute == kUsedHigh ? kSuccess : kInvalidValue;
  });
}

SIMGPU_API Error cudaMemPoolGetAttribute(void* pool_handle, int attribute, void* value) {
  return runtime_query(__func__, [&]() -> Error {
    const std::shared_ptr<Pool> pool = pools().find(pool_handle);
    if (pool == nullptr || value == nullptr) return kInvalidValue;
    std::lock_guard<std::mutex> lock(pool->mutex);
    if (attribute >= kReuseFollowEventDependencies && attribute <= kReuseAllowInternalDependencies) {
      *static_cast<int*>(value) = pool->reuse[static_cast<size_t>(attribute - 1)];
      return kSuccess;
    }
    if (attribute == kReleaseThreshold) {
      *static_cast<uint64_t*>(value) = pool->release_threshold;
      return kSuccess;
    }
    if (attribute < kReservedCurrent || attribute > kUsedHigh) return kInvalidValue;
    *static_cast<uint64_t*>(value) = used_bytes(pool->device);
    return kSuccess;
  });
}

// --- memory of graphs: allocation nodes are not supported, so there is none ----------------------

SIMGPU_API Error cudaDeviceGetGraphMemAttribute(int ordinal, int, void* value) {
  return runtime_query(__func__, [&]() -> Error {
    if (!valid_device(ordinal)) return kInvalidDevice;
    *static_cast<uint64_t*>(value) = 0;
    return kSuccess;
  });
}

SIMGPU_API Error cudaDeviceSetGraphMemAttribute(int ordinal, int, void*) {
  return runtime_query(__func__,
                       [&]() -> Error { return valid_device(ordinal) ? kSuccess : kInvalidDevice; });
}

SIMGPU_API Error cudaDeviceGraphMemTrim(int ordinal) {
  return runtime_query(__func__,
                       [&]() -> Error { return valid_device(ordinal) ? kSuccess : kInvalidDevice; });
}
