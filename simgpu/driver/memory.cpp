// Memory, as the driver names it. Addresses are integers (CUdeviceptr).

#include "simgpu/core/allocation.h"
#include "simgpu/core/call.h"
#include "simgpu/core/capture.h"
#include "simgpu/core/copy.h"

using namespace simgpu;

namespace {

using DevicePointer = unsigned long long;

void* pointer(DevicePointer address) { return reinterpret_cast<void*>(address); }

// After a call that is synchronous by its contract.
Error wait_for_legacy_stream(Error queued) {
  if (queued != kSuccess) return queued;
  StreamMark mark;
  if (Error error = mark_stream(nullptr, &mark)) return error;
  wait_for(mark);
  return device_fault(device());
}

// CUpointer_attribute (cuda.h).
enum PointerAttribute : int {
  kContextOf = 1,
  kMemoryTypeOf = 2,
  kDevicePointerOf = 3,
  kHostPointerOf = 4,
  kSyncMemops = 6,
  kBufferId = 7,
  kIsManaged = 8,
  kDeviceOrdinal = 9,
  kRangeStart = 11,
  kRangeSize = 12,
  kMapped = 13,
};

Error pointer_attribute(void* data, int attribute, DevicePointer address) {
  constexpr unsigned kHost = 1;
  constexpr unsigned kDevice = 2;
  Block block;
  if (!find_block(pointer(address), &block)) return kInvalidValue;
  switch (attribute) {
    case kContextOf:
      *static_cast<void**>(data) = primary_context(block.device);
      return kSuccess;
    case kMemoryTypeOf:
      *static_cast<unsigned*>(data) = block.on_device() ? kDevice : kHost;
      return kSuccess;
    case kDevicePointerOf:
      *static_cast<DevicePointer*>(data) = address;
      return kSuccess;
    case kHostPointerOf:
      if (block.on_device() && block.kind != MemoryKind::kManaged) return kInvalidValue;
      *static_cast<void**>(data) = pointer(address);
      return kSuccess;
    case kSyncMemops:
      *static_cast<unsigned*>(data) = 0;
      return kSuccess;
    case kBufferId:
      *static_cast<unsigned long long*>(data) = block.id;
      return kSuccess;
    case kIsManaged:
      *static_cast<unsigned*>(data) = block.kind == MemoryKind::kManaged ? 1 : 0;
      return kSuccess;
    case kDeviceOrdinal:
      *static_cast<int*>(data) = block.device;
      return kSuccess;
    case kRangeStart:
      *static_cast<DevicePointer*>(data) = block.base;
      return kSuccess;
    case kRangeSize:
      *static_cast<size_t*>(data) = block.bytes;
      return kSuccess;
    case kMapped:
      *static_cast<unsigned*>(data) = 1;
      return kSuccess;
    default:
      unsupported("this attribute of cuPointerGetAttribute");
      return kNotSupported;
  }
}

}  // namespace

SIMGPU_API Error cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  return driver_call(__func__, [&]() -> Error {
    memory_info(device(), free_bytes, total_bytes);
    return kSuccess;
  });
}

SIMGPU_API Error cuMemAlloc_v2(DevicePointer* address, size_t bytes) {
  return driver_call(__func__, [&]() -> Error {
    if (address == nullptr || bytes == 0) return kInvalidValue;
    if (Error error = check_unsafe_call()) return error;
    void* allocated = nullptr;
    const Error error = allocate_device(bytes, MemoryKind::kDevice, &allocated);
    *address = reinterpret_cast<DevicePointer>(allocated);
    return error;
  });
}

SIMGPU_API Error cuMemFree_v2(DevicePointer address) {
  return driver_call(__func__, [&]() -> Error {
    if (Error error = check_unsafe_call()) return error;
    return free_device(pointer(address));
  });
}

SIMGPU_API Error cuMemAllocAsync(DevicePointer* address, size_t bytes, void* stream) {
  return driver_call(__func__, [&]() -> Error {
    if (address == nullptr || bytes == 0) return kInvalidValue;
    void* allocated = nullptr;
    const Error error = allocate_from_pool(bytes, stream, &allocated);
    *address = reinterpret_cast<DevicePointer>(allocated);
    return error;
  });
}

SIMGPU_API Error cuMemFreeAsync(DevicePointer address, void* stream) {
  return driver_call(__func__, [&]() -> Error { return free_on_stream(pointer(address), stream); });
}

SIMGPU_API Error cuMemHostAlloc(void** address, size_t bytes, unsigned) {
  return driver_call(__func__, [&]() -> Error {
    if (address == nullptr || bytes == 0) return kInvalidValue;
    if (Error error = check_unsafe_call()) return error;
    return allocate_host(bytes, address);
  });
}

SIMGPU_API Error cuMemFreeHost(void* address) {
  return driver_call(__func__, [&]() -> Error {
    if (Error error = check_unsafe_call()) return error;
    return free_host(address);
  });
}

SIMGPU_API Error cuMemGetAddressRange_v2(DevicePointer* base, size_t* bytes, DevicePointer address) {
  return driver_call(__func__, [&]() -> Error {
    Block block;
    if (!find_block(pointer(address), &block)) return kNotFound;
    if (base != nullptr) *base = block.base;
    if (bytes != nullptr) *bytes = block.bytes;
    return kSuccess;
  });
}

SIMGPU_API Error cuPointerGetAttribute(void* data, int attribute, DevicePointer address) {
  return driver_query(__func__, [&]() -> Error { return pointer_attribute(data, attribute, address); });
}

SIMGPU_API Error cuPointerGetAttributes(unsigned count, int* attributes, void** data, DevicePointer address) {
  return driver_query(__func__, [&]() -> Error {
    for (unsigned i = 0; i < count; ++i) {
      if (pointer_attribute(data[i], attributes[i], address) == kNotSupported) return kNotSupported;
    }
    return kSuccess;
  });
}

// --- copies and fills ----------------------------------------------------------------------------

SIMGPU_API Error cuMemcpyHtoD_v2(DevicePointer to, const void* from, size_t bytes) {
  return driver_call(__func__, [&]() -> Error {
    if (Error error = check_unsafe_call()) return error;
    return wait_for_legacy_stream(queue_copy(pointer(to), from, bytes, kHostToDevice, nullptr));
  });
}

SIMGPU_API Error cuMemcpyDtoH_v2(void* to, DevicePointer from, size_t bytes) {
  return driver_call(__func__, [&]() -> Error {
    if (Error error = check_unsafe_call()) return error;
    return wait_for_legacy_stream(queue_copy(to, pointer(from), bytes, kDeviceToHost, nullptr));
  });
}

SIMGPU_API Error cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, size_t bytes, void* stream) {
  return driver_call(__func__,
                     [&]() -> Error { return queue_copy(pointer(to), from, bytes, kHostToDevice, stream); });
}

SIMGPU_API Error cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, size_t bytes, void* stream) {
  return driver_call(__func__,
                     [&]() -> Error { return queue_copy(to, pointer(from), bytes, kDeviceToHost, stream); });
}

SIMGPU_API Error cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, size_t bytes, void* stream) {
  return driver_call(__func__, [&]() -> Error {
    return queue_copy(pointer(to), pointer(from), bytes, kDeviceToDevice, stream);
  });
}

SIMGPU_API Error cuMemcpyAsync(DevicePointer to, DevicePointer from, size_t bytes, void* stream) {
  return driver_call(
      __func__, [&]() -> Error { return queue_copy(pointer(to), pointer(from), bytes, kAnyToAny, stream); });
}

SIMGPU_API Error cuMemsetD8_v2(DevicePointer address, unsigned char value, size_t bytes) {
  return driver_call(__func__, [&]() -> Error {
    if (Error error = check_unsafe_call()) return error;
    return wait_for_legacy_stream(queue_fill(pointer(address), value, bytes, nullptr));
  });
}

SIMGPU_API Error cuMemsetD8Async(DevicePointer address, unsigned char value, size_t bytes, void* stream) {
  return driver_call(__func__, [&]() -> Error { return queue_fill(pointer(address), value, bytes, stream); });
}

SIMGPU_API Error cuMemsetD32Async(DevicePointer address, unsigned value, size_t count, void* stream) {
  return driver_call(__func__, [&]() -> Error {
    if (!covered(pointer(address), count * sizeof value)) return kInvalidValue;
    return enqueue(
        stream,
        [=] {
          unsigned* words = static_cast<unsigned*>(pointer(address));
          for (size_t i = 0; i < count; ++i) words[i] = value;
        },
        Run::kInlineIfIdle);
  });
}

SIMGPU_API Error cuStreamWriteValue32_v2(void* stream, DevicePointer address, unsigned value, unsigned) {
  return driver_call(__func__, [&]() -> Error {
    if (!covered(pointer(address), sizeof value)) return kInvalidValue;
    return enqueue(
        stream, [=] { *static_cast<volatile unsigned*>(pointer(address)) = value; }, Run::kInlineIfIdle);
  });
}
