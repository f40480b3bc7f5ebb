// libnvidia-ml.so.1: what PyTorch, DeepSpeed and pynvml ask NVML for. A library of its own, because programs
// open it by that name. It sees the machine's devices, whatever CUDA_VISIBLE_DEVICES says, as the real one
// does.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "simgpu/core/abi.h"
#include "simgpu/core/profile.h"
#include "simgpu/core/settings.h"

using namespace simgpu;

namespace {

// nvmlReturn_t (nvml.h).
enum Result : int {
  kOk = 0,
  kInvalidArgument = 2,
  kNotSupportedHere = 3,
  kNotFoundHere = 6,
  kInsufficientSize = 7,
};

// nvmlDevice_t: the address of an element.
struct Device {};
Device devices[kMaxDevices];

int index_of(const Device* device) { return static_cast<int>(device - devices); }

bool valid(const Device* device) {
  return device >= devices && device < devices + kMaxDevices && index_of(device) < settings().devices;
}

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct Memory2 {
  unsigned version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};

struct Utilization {
  unsigned gpu;
  unsigned memory;
};

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  char bus_id[32];
};

// nvmlGpuFabricInfo_t has no version in front, nvmlGpuFabricInfoV_t has; state 0: not supported.
struct FabricInfo {
  unsigned char cluster_uuid[16];
  int status;
  unsigned clique_id;
  unsigned char state;
};

struct VersionedFabricInfo {
  unsigned version;
  FabricInfo info;
  unsigned health_mask;
};

// Bytes that all processes have taken of a physical device.
unsigned long long used_bytes(int physical) {
  using Used = size_t (*)(int);
  static const Used kUsed = reinterpret_cast<Used>(dlsym(RTLD_DEFAULT, "simgpu_used_bytes"));
  return kUsed != nullptr ? kUsed(physical) : 0;
}

// nvmlProcessInfo_v1_t and _v2_t.
struct Process {
  unsigned pid;
  unsigned long long bytes;
};
struct Process2 {
  unsigned pid;
  unsigned long long bytes;
  unsigned instance, compute_instance;
};

// The processes that have memory of the device; `count` is the room there is, then how many there are.
template <typename Info>
Result processes_of(Device* device, unsigned* count, Info* processes) {
  using Users = unsigned (*)(int, unsigned*, unsigned long long*, unsigned);
  static const Users kUsers = reinterpret_cast<Users>(dlsym(RTLD_DEFAULT, "simgpu_users"));
  if (!valid(device) || count == nullptr) return kInvalidArgument;
  unsigned pids[64];
  unsigned long long bytes[64];
  const unsigned room = *count;
  *count = kUsers != nullptr ? std::min(kUsers(index_of(device), pids, bytes, 64), 64u) : 0;
  if (*count > room || (*count > 0 && processes == nullptr)) return kInsufficientSize;
  for (unsigned i = 0; i < *count; ++i) {
    processes[i] = Info{};
    processes[i].pid = pids[i];
    processes[i].bytes = bytes[i];
  }
  return kOk;
}

std::string uuid_of(int physical) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char byte[3];
    std::snprintf(byte, sizeof byte, "%02x", profile::uuid_byte(physical, i));
    text += byte;
    if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
  }
  return text;
}

Result copy_text(const std::string& text, char* to, unsigned length) {
  if (to == nullptr || length == 0) return kInvalidArgument;
  std::snprintf(to, length, "%s", text.c_str());
  return kOk;
}

}  // namespace

// --- the library ---------------------------------------------------------------------------------

SIMGPU_API Result nvmlInit() { return kOk; }
SIMGPU_API Result nvmlInit_v2() { return kOk; }
SIMGPU_API Result nvmlInitWithFlags(unsigned) { return kOk; }
SIMGPU_API Result nvmlShutdown() { return kOk; }

SIMGPU_API const char* nvmlErrorString(Result result) {
  switch (result) {
    case kOk:
      return "Success";
    case kInvalidArgument:
      return "Invalid Argument";
    case kNotSupportedHere:
      return "Not Supported";
    case kInsufficientSize:
      return "Insufficient Size";
    case kNotFoundHere:
      return "Not Found";
  }
  return "Unknown Error";
}

SIMGPU_API Result nvmlSystemGetDriverVersion(char* text, unsigned length) {
  return copy_text("580.00.00", text, length);
}

SIMGPU_API Result nvmlSystemGetNVMLVersion(char* text, unsigned length) {
  return copy_text("13.580.00", text, length);
}

SIMGPU_API Result nvmlSystemGetCudaDriverVersion(int* version) {
  *version = kCudaVersion;
  return kOk;
}

SIMGPU_API Result nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = kCudaVersion;
  return kOk;
}

// --- finding a device ----------------------------------------------------------------------------

SIMGPU_API Result nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(settings().devices);
  return kOk;
}

SIMGPU_API Result nvmlDeviceGetCount(unsigned* count) { return nvmlDeviceGetCount_v2(count); }

SIMGPU_API Result nvmlDeviceGetHandleByIndex_v2(unsigned index, Device** device) {
  if (index >= static_cast<unsigned>(settings().devices)) return kInvalidArgument;
  *device = &devices[index];
  return kOk;
}

SIMGPU_API Result nvmlDeviceGetHandleByIndex(unsigned index, Device** device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

SIMGPU_API Result nvmlDeviceGetHandleByPciBusId_v2(const char* text, Device** device) {
  unsigned domain = 0;
  unsigned bus = 0;
  if (std::sscanf(text, "%x:%x", &domain, &bus) != 2) return kInvalidArgument;
  for (int i = 0; i < settings().devices; ++i) {
    if (profile::pci_bus(i) != static_cast<int>(bus)) continue;
    *device = &devices[i];
    return kOk;
  }
  return kNotFoundHere;
}

SIMGPU_API Result nvmlDeviceGetHandleByPciBusId(const char* text, Device** device) {
  return nvmlDeviceGetHandleByPciBusId_v2(text, device);
}

SIMGPU_API Result nvmlDeviceGetHandleByUUID(const char* uuid, Device** device) {
  for (int i = 0; i < settings().devices; ++i) {
    if (uuid_of(i) != uuid) continue;
    *device = &devices[i];
    return kOk;
  }
  return kNotFoundHere;
}

// --- what a device is ----------------------------------------------------------------------------

SIMGPU_API Result nvmlDeviceGetIndex(Device* device, unsigned* index) {
  if (!valid(device)) return kInvalidArgument;
  *index = static_cast<unsigned>(index_of(device));
  return kOk;
}

SIMGPU_API Result nvmlDeviceGetMinorNumber(Device* device, unsigned* number) {
  return nvmlDeviceGetIndex(device, number);
}

SIMGPU_API Result nvmlDeviceGetName(Device* device, char* text, unsigned length) {
  return valid(device) ? copy_text(profile::kName, text, length) : kInvalidArgument;
}

SIMGPU_API Result nvmlDeviceGetUUID(Device* device, char* text, unsigned length) {
  return valid(device) ? copy_text(uuid_of(index_of(device)), text, length) : kInvalidArgument;
}

SIMGPU_API Result nvmlDeviceGetPciInfo_v3(Device* device, PciInfo* info) {
  if (!valid(device)) return kInvalidArgument;
  const int bus = profile::pci_bus(index_of(device));
  std::memset(info, 0, sizeof *info);
  info->bus = static_cast<unsigned>(bus);
  std::snprintf(info->bus_id_legacy, sizeof info->bus_id_legacy, "0000:%02X:00.0", bus & 0xff);
  std::snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", bus & 0xff);
  return kOk;
}

SIMGPU_API Result nvmlDeviceGetCudaComputeCapability(Device* device, int* major, int* minor) {
  if (!valid(device)) return kInvalidArgument;
  *major = profile::kMajor;
  *minor = profile::kMinor;
  return kOk;
}

// --- what it is doing ----------------------------------------------------------------------------

SIMGPU_API Result nvmlDeviceGetMemoryInfo(Device* device, Memory* memory) {
  if (!valid(device)) return kInvalidArgument;
  memory->total = device_bytes(index_of(device));
  memory->used = used_bytes(index_of(device));
  memory->free = memory->total - memory->used;
  return kOk;
}

SIMGPU_API Result nvmlDeviceGetMemoryInfo_v2(Device* device, Memory2* memory) {
  if (!valid(device)) return kInvalidArgument;
  memory->total = device_bytes(index_of(device));
  memory->reserved = 0;
  memory->used = used_bytes(index_of(device));
  memory->free = memory->total - memory->used;
  return kOk;
}

SIMGPU_API Result nvmlDeviceGetUtilizationRates(Device* device, Utilization* rates) {
  if (!valid(device)) return kInvalidArgument;
  *rates = Utilization{0, 0};
  return kOk;
}

SIMGPU_API Result nvmlDeviceGetTemperature(Device*, int, unsigned*) { return kNotSupportedHere; }
SIMGPU_API Result nvmlDeviceGetPowerUsage(Device*, unsigned*) { return kNotSupportedHere; }
SIMGPU_API Result nvmlDeviceGetClockInfo(Device*, int, unsigned*) { return kNotSupportedHere; }

SIMGPU_API Result nvmlDeviceGetComputeRunningProcesses(Device* device, unsigned* count, Process* processes) {
  return processes_of(device, count, processes);
}

SIMGPU_API Result nvmlDeviceGetComputeRunningProcesses_v2(Device* device, unsigned* count,
                                                          Process2* processes) {
  return processes_of(device, count, processes);
}

SIMGPU_API Result nvmlDeviceGetComputeRunningProcesses_v3(Device* device, unsigned* count,
                                                          Process2* processes) {
  return processes_of(device, count, processes);
}

// --- links: none ---------------------------------------------------------------------------------

SIMGPU_API Result nvmlDeviceGetNvLinkState(Device*, unsigned, int*) { return kNotSupportedHere; }
SIMGPU_API Result nvmlDeviceGetNvLinkRemoteDeviceType(Device*, unsigned, int*) { return kNotSupportedHere; }
SIMGPU_API Result nvmlDeviceGetNvLinkRemotePciInfo_v2(Device*, unsigned, void*) { return kNotSupportedHere; }

SIMGPU_API Result nvmlDeviceGetGpuFabricInfo(Device* device, FabricInfo* info) {
  if (!valid(device)) return kInvalidArgument;
  std::memset(info, 0, sizeof *info);
  return kOk;
}

SIMGPU_API Result nvmlDeviceGetGpuFabricInfoV(Device* device, VersionedFabricInfo* info) {
  if (!valid(device)) return kInvalidArgument;
  std::memset(&info->info, 0, sizeof info->info);
  info->health_mask = 0;
  return kOk;
}
