// The driver's start, devices and error names.
#include <cstdio>

#include "simgpu/core/attributes.h"
#include "simgpu/core/call.h"
#include "simgpu/core/profile.h"
#include "simgpu/core/settings.h"

using namespace simgpu;

SIMGPU_API Error cuInit(unsigned flags) {
  return guarded(__func__, kUnknownError, [&]() -> Error {
    if (flags != 0) return kInvalidValue;
    if (Error error = start()) return error;
    return device_count() > 0 ? kSuccess : kNoDevice;
  });
}

SIMGPU_API Error cuDriverGetVersion(int* version) {
  return guarded(__func__, kUnknownError, [&]() -> Error {
    *version = kCudaVersion;
    return kSuccess;
  });
}

SIMGPU_API Error cuDeviceGetCount(int* count) {
  return driver_query(__func__, [&]() -> Error {
    *count = device_count();
    return kSuccess;
  });
}

SIMGPU_API Error cuDeviceGet(int* handle, int ordinal) {
  return driver_query(__func__, [&]() -> Error {
    if (!valid_device(ordinal)) return kInvalidDevice;
    *handle = ordinal;
    return kSuccess;
  });
}

SIMGPU_API Error cuDeviceGetName(char* name, int length, int handle) {
  return driver_query(__func__, [&]() -> Error {
    if (!valid_device(handle)) return kInvalidDevice;
    std::snprintf(name, static_cast<size_t>(length), "%s", profile::kName);
    return kSuccess;
  });
}

SIMGPU_API Error cuDeviceTotalMem_v2(size_t* bytes, int handle) {
  return driver_query(__func__, [&]() -> Error {
    if (!valid_device(handle)) return kInvalidDevice;
    *bytes = device_bytes(physical_device(handle));
    return kSuccess;
  });
}

SIMGPU_API Error cuDeviceGetAttribute(int* value, int attribute, int handle) {
  return driver_query(__func__, [&]() -> Error {
    if (value == nullptr) return kInvalidValue;
    if (!valid_device(handle)) return kInvalidDevice;
    *value = device_attribute(attribute, handle);
    return kSuccess;
  });
}

SIMGPU_API Error cuDeviceGetUuid_v2(unsigned char* uuid, int handle) {
  return driver_query(__func__, [&]() -> Error {
    if (!valid_device(handle)) return kInvalidDevice;
    for (int i = 0; i < 16; ++i) uuid[i] = profile::uuid_byte(physical_device(handle), i);
    return kSuccess;
  });
}

SIMGPU_API Error cuDeviceGetPCIBusId(char* text, int length, int handle) {
  return driver_query(__func__, [&]() -> Error {
    if (!valid_device(handle)) return kInvalidDevice;
    std::snprintf(text, static_cast<size_t>(length), "0000:%02x:00.0",
                  profile::pci_bus(physical_device(handle)));
    return kSuccess;
  });
}

SIMGPU_API Error cuDeviceCanAccessPeer(int* can, int from, int to) {
  return driver_query(__func__, [&]() -> Error {
    if (!valid_device(from) || !valid_device(to)) return kInvalidDevice;
    *can = from != to ? 1 : 0;
    return kSuccess;
  });
}

// --- errors --------------------------------------------------------------------------------------

SIMGPU_API Error cuGetErrorString(int error, const char** text) {
  return guarded(__func__, kUnknownError, [&]() -> Error {
    *text = driver_error_name(error) != nullptr ? error_text(error) : nullptr;
    return *text != nullptr ? kSuccess : kInvalidValue;
  });
}

SIMGPU_API Error cuGetErrorName(int error, const char** name) {
  return guarded(__func__, kUnknownError, [&]() -> Error {
    *name = driver_error_name(error);
    return *name != nullptr ? kSuccess : kInvalidValue;
  });
}

// --- log messages of the driver: there are none --------------------------------------------------

SIMGPU_API Error cuLogsRegisterCallback(void*, void*, void** handle) {
  return guarded(__func__, kUnknownError, [&]() -> Error {
    static char registered;
    if (handle != nullptr) *handle = &registered;
    return kSuccess;
  });
}

SIMGPU_API Error cuLogsUnregisterCallback(void*) {
  return guarded(__func__, kUnknownError, []() -> Error { return kSuccess; });
}
