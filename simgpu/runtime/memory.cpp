// Allocation, pinned memory, and what is known about an address.
#include <cstring>

#include "simgpu/core/allocation.h"
#include "simgpu/core/call.h"
#include "simgpu/core/capture.h"
#include "simgpu/core/log.h"

using namespace simgpu;

namespace {

// cudaMemoryType.
enum MemoryType : int { kUnregistered = 0, kHostMemory = 1, kDeviceMemory = 2, kManagedMemory = 3 };

// cudaPointerAttributes (driver_types.h).
struct PointerAttributes {
  int type;
  int device;
  void* device_pointer;
  void* host_pointer;
  long reserved[8];
};

int memory_type(const Block& block) {
  if (!block.on_device()) return kHostMemory;
  return block.kind == MemoryKind::kManaged ? kManagedMemory : kDeviceMemory;
}

bool host_accessible(const Block& block) { return !block.on_device() || block.kind == MemoryKind::kManaged; }

}  // namespace

SIMGPU_API Error cudaMalloc(void** address, size_t bytes) {
  return runtime_call(__func__, [&]() -> Error {
    if (address == nullptr) return kInvalidValue;
    if (Error error = check_unsafe_call()) return error;
    return allocate_device(bytes, MemoryKind::kDevice, address);
  });
}

SIMGPU_API Error cudaMallocManaged(void** address, size_t bytes, unsigned) {
  return runtime_call(__func__, [&]() -> Error {
    if (address == nullptr || bytes == 0) return kInvalidValue;
    if (Error error = check_unsafe_call()) return error;
    return allocate_device(bytes, MemoryKind::kManaged, address);
  });
}

SIMGPU_API Error cudaMallocPitch(void** address, size_t* pitch, size_t width, size_t height) {
  return runtime_call(__func__, [&]() -> Error {
    constexpr size_t kPitchAlignment = 512;
    if (address == nullptr || pitch == nullptr) return kInvalidValue;
    if (Error error = check_unsafe_call()) return error;
    *pitch = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
    return allocate_device(*pitch * height, MemoryKind::kDevice, address);
  });
}

SIMGPU_API Error cudaFree(void* address) {
  return runtime_call(__func__, [&]() -> Error {
    if (address == nullptr) return kSuccess;
    if (Error error = check_unsafe_call()) return error;
    return free_device(address);
  });
}

SIMGPU_API Error cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return runtime_call(__func__, [&]() -> Error {
    memory_info(device(), free_bytes, total_bytes);
    return kSuccess;
  });
}

// --- pinned host memory --------------------------------------------------------------------------

SIMGPU_API Error cudaHostAlloc(void** address, size_t bytes, unsigned) {
  return runtime_call(__func__, [&]() -> Error {
    if (address == nullptr) return kInvalidValue;
    if (Error error = check_unsafe_call()) return error;
    return allocate_host(bytes, address);
  });
}

SIMGPU_API Error cudaMallocHost(void** address, size_t bytes) {
  return runtime_call(__func__, [&]() -> Error {
    if (address == nullptr) return kInvalidValue;
    if (Error error = check_unsafe_call()) return error;
    return allocate_host(bytes, address);
  });
}

SIMGPU_API Error cudaFreeHost(void* address) {
  return runtime_call(__func__, [&]() -> Error {
    if (address == nullptr) return kSuccess;
    if (Error error = check_unsafe_call()) return error;
    return free_host(address);
  });
}

SIMGPU_API Error cudaHostRegister(void* address, size_t bytes, unsigned) {
  return runtime_call(__func__, [&]() -> Error {
    if (address == nullptr || bytes == 0) return kInvalidValue;
    if (find_block(address, nullptr)) return kHostAlreadyRegistered;
    add_block(address, bytes, device(), MemoryKind::kRegistered);
    return kSuccess;
  });
}

SIMGPU_API Error cudaHostUnregister(void* address) {
  return runtime_call(__func__, [&]() -> Error {
    Block block;
    if (!find_block(address, &block) || block.kind != MemoryKind::kRegistered) return kHostNotRegistered;
    return remove_block(address, nullptr) ? kSuccess : kInvalidValue;
  });
}

SIMGPU_API Error cudaHostGetDevicePointer(void** on_device, void* address, unsigned flags) {
  return runtime_call(__func__, [&]() -> Error {
    Block block;
    if (flags != 0 || !find_block(address, &block) || block.on_device()) return kInvalidValue;
    *on_device = address;  // unified addressing
    return kSuccess;
  });
}

SIMGPU_API Error cudaHostGetFlags(unsigned* flags, void* address) {
  return runtime_call(__func__, [&]() -> Error {
    Block block;
    if (!find_block(address, &block) || block.on_device()) return kInvalidValue;
    *flags = 0;  // cudaHostAllocDefault
    return kSuccess;
  });
}

// --- addresses -----------------------------------------------------------------------------------

SIMGPU_API Error cudaPointerGetAttributes(PointerAttributes* attributes, const void* address) {
  return runtime_query(__func__, [&]() -> Error {
    if (attributes == nullptr) return kInvalidValue;
    std::memset(attributes, 0, sizeof *attributes);
    Block block;
    if (!find_block(address, &block)) {
      attributes->type = kUnregistered;
      attributes->device = -2;  // cudaInvalidDeviceId
      attributes->host_pointer = const_cast<void*>(address);
      return kSuccess;
    }
    attributes->type = memory_type(block);
    attributes->device = block.device;
    attributes->device_pointer = const_cast<void*>(address);
    if (host_accessible(block)) attributes->host_pointer = const_cast<void*>(address);
    return kSuccess;
  });
}

// --- managed memory: hints without effect --------------------------------------------------------

SIMGPU_API Error cudaStreamAttachMemAsync(void*, void*, size_t, unsigned) {
  return runtime_call(__func__, []() -> Error { return kSuccess; });
}
