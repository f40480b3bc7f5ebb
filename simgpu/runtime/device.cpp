// Devices: how many, which one is current, what they can, and what concerns a device as a whole.
#include <atomic>
#include <cstdio>

#include "simgpu/core/attributes.h"
#include "simgpu/core/call.h"
#include "simgpu/core/capture.h"
#include "simgpu/core/profile.h"
#include "simgpu/core/stream.h"

using namespace simgpu;

SIMGPU_API Error cudaGetDeviceCount(int* count) {
  return runtime_query(__func__, [&]() -> Error {
    *count = device_count();
    return *count > 0 ? kSuccess : kNoDevice;
  });
}

SIMGPU_API Error cudaGetDevice(int* ordinal) {
  return runtime_query(__func__, [&]() -> Error {
    if (device_count() == 0) return kNoDevice;
    *ordinal = device();
    return kSuccess;
  });
}

SIMGPU_API Error cudaSetDevice(int ordinal) {
  return runtime_query(__func__, [&]() -> Error {
    if (device_count() == 0) return kNoDevice;
    if (!valid_device(ordinal)) return kInvalidDevice;
    set_device(ordinal);
    return enter_device();  // since CUDA 12 this creates the context
  });
}

SIMGPU_API Error cudaInitDevice(int ordinal, unsigned, unsigned) {
  return runtime_query(__func__, [&]() -> Error {
    if (!valid_device(ordinal)) return kInvalidDevice;
    activate_context(ordinal);
    return kSuccess;
  });
}

SIMGPU_API Error cudaSetValidDevices(int* ordinals, int count) {
  return runtime_query(__func__, [&]() -> Error {
    for (int i = 0; i < count; ++i) {
      if (!valid_device(ordinals[i])) return kInvalidDevice;
    }
    return kSuccess;
  });
}

SIMGPU_API Error cudaChooseDevice(int* ordinal, const void*) {
  return runtime_query(__func__, [&]() -> Error {
    *ordinal = 0;  // all devices are alike
    return device_count() > 0 ? kSuccess : kNoDevice;
  });
}

SIMGPU_API Error cudaSetDeviceFlags(unsigned) {
  return runtime_query(__func__, []() -> Error { return kSuccess; });
}

SIMGPU_API Error cudaGetDeviceFlags(unsigned* flags) {
  return runtime_query(__func__, [&]() -> Error {
    *flags = 0;  // cudaDeviceScheduleAuto
    return kSuccess;
  });
}

SIMGPU_API Error cudaDeviceSynchronize() {
  return runtime_call(__func__, []() -> Error {
    if (Error error = check_unsafe_call()) return error;
    drain_device(device());
    return device_fault(device());
  });
}

SIMGPU_API Error cudaDeviceGetAttribute(int* value, int attribute, int ordinal) {
  return runtime_query(__func__, [&]() -> Error {
    if (value == nullptr) return kInvalidValue;
    if (!valid_device(ordinal)) return kInvalidDevice;
    *value = device_attribute(attribute, ordinal);
    return kSuccess;
  });
}

SIMGPU_API Error cudaDeviceGetPCIBusId(char* text, int length, int ordinal) {
  return runtime_query(__func__, [&]() -> Error {
    if (!valid_device(ordinal)) return kInvalidDevice;
    if (text == nullptr || length < 1) return kInvalidValue;
    std::snprintf(text, static_cast<size_t>(length), "0000:%02x:00.0",
                  profile::pci_bus(physical_device(ordinal)));
    return kSuccess;
  });
}

SIMGPU_API Error cudaDeviceGetByPCIBusId(int* ordinal, const char* text) {
  return runtime_query(__func__, [&]() -> Error {
    unsigned domain = 0;
    unsigned bus = 0;
    if (std::sscanf(text, "%x:%x", &domain, &bus) != 2) return kInvalidValue;
    for (int i = 0; i < device_count(); ++i) {
      if (profile::pci_bus(physical_device(i)) != static_cast<int>(bus)) continue;
      *ordinal = i;
      return kSuccess;
    }
    return kInvalidDevice;
  });
}

SIMGPU_API Error cudaDeviceGetStreamPriorityRange(int* lowest, int* greatest) {
  return runtime_call(__func__, [&]() -> Error {
    if (lowest != nullptr) *lowest = profile::kLowestStreamPriority;
    if (greatest != nullptr) *greatest = profile::kGreatestStreamPriority;
    return kSuccess;
  });
}

// --- peers ---------------------------------------------------------------------------------------

namespace {

struct PeerAccess {
  std::atomic<bool> enabled[kMaxDevices][kMaxDevices];
};

PeerAccess& peer_access() {
  static PeerAccess* const kAccess = new PeerAccess{};
  return *kAccess;
}

}  // namespace

SIMGPU_API Error cudaDeviceCanAccessPeer(int* can, int from, int to) {
  return runtime_query(__func__, [&]() -> Error {
    if (!valid_device(from) || !valid_device(to)) return kInvalidDevice;
    *can = from != to ? 1 : 0;
    return kSuccess;
  });
}

SIMGPU_API Error cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return runtime_call(__func__, [&]() -> Error {
    if (!valid_device(peer) || peer == device()) return kInvalidDevice;
    if (flags != 0) return kInvalidValue;
    return peer_access().enabled[device()][peer].exchange(true) ? kPeerAlreadyEnabled : kSuccess;
  });
}

SIMGPU_API Error cudaDeviceDisablePeerAccess(int peer) {
  return runtime_call(__func__, [&]() -> Error {
    if (!valid_device(peer)) return kInvalidDevice;
    return peer_access().enabled[device()][peer].exchange(false) ? kSuccess : kPeerNotEnabled;
  });
}

SIMGPU_API Error cudaDeviceGetP2PAttribute(int* value, int attribute, int from, int to) {
  return runtime_query(__func__, [&]() -> Error {
    constexpr int kPerformanceRank = 1;
    if (!valid_device(from) || !valid_device(to)) return kInvalidDevice;
    *value = attribute == kPerformanceRank ? 0 : 1;
    return kSuccess;
  });
}

// --- limits and caches: accepted, without effect -------------------------------------------------

SIMGPU_API Error cudaDeviceGetLimit(size_t* value, int limit) {
  return runtime_call(__func__, [&]() -> Error {
    constexpr int kStackSize = 0;
    *value = limit == kStackSize ? 1024 : size_t{8} << 20;
    return kSuccess;
  });
}

SIMGPU_API Error cudaDeviceSetLimit(int, size_t) {
  return runtime_call(__func__, []() -> Error { return kSuccess; });
}

SIMGPU_API Error cudaDeviceGetCacheConfig(int* config) {
  return runtime_call(__func__, [&]() -> Error {
    *config = 0;  // cudaFuncCachePreferNone
    return kSuccess;
  });
}

SIMGPU_API Error cudaDeviceSetCacheConfig(int) {
  return runtime_call(__func__, []() -> Error { return kSuccess; });
}

SIMGPU_API Error cudaCtxResetPersistingL2Cache() {
  return runtime_call(__func__, []() -> Error { return kSuccess; });
}

SIMGPU_API Error cudaProfilerStart() {
  return runtime_call(__func__, []() -> Error { return kSuccess; });
}

SIMGPU_API Error cudaProfilerStop() {
  return runtime_call(__func__, []() -> Error { return kSuccess; });
}
