// What kind of device is simulated: an H100 with 80 GB. Sources: cudaDeviceProp and cudaDeviceGetAttribute as
// such a device reports them; NVIDIA's "CUDA C++ Programming Guide", table of compute capability 9.0.
#pragma once

#include <cstddef>

namespace simgpu::profile {

inline constexpr char kName[] = "NVIDIA H100 80GB HBM3 (simulated)";
inline constexpr int kMajor = 9;
inline constexpr int kMinor = 0;
inline constexpr int kMultiprocessors = 132;
inline constexpr int kWarpSize = 32;
inline constexpr int kThreadsPerBlock = 1024;
inline constexpr int kBlockDimZ = 64;
inline constexpr int kGridDimX = 2147483647;
inline constexpr int kGridDimYZ = 65535;
inline constexpr int kThreadsPerMultiprocessor = 2048;
inline constexpr int kBlocksPerMultiprocessor = 32;
inline constexpr int kRegisters = 65536;
inline constexpr int kSharedPerBlock = 49152;
inline constexpr int kSharedPerBlockOptin = 232448;
inline constexpr int kSharedPerMultiprocessor = 233472;
inline constexpr int kSharedReservedPerBlock = 1024;
inline constexpr int kConstantBytes = 65536;
inline constexpr int kMaxPitch = 2147483647;
inline constexpr int kL2Bytes = 52428800;
inline constexpr int kPersistingL2Bytes = 32768000;
inline constexpr int kAccessWindowBytes = 134213632;
inline constexpr int kClockKhz = 1980000;
inline constexpr int kMemoryClockKhz = 2619000;
inline constexpr int kMemoryBusBits = 5120;
inline constexpr int kTextureAlignment = 512;
inline constexpr int kTexturePitchAlignment = 32;
inline constexpr int kTextureExtent = 16384;
inline constexpr int kCopyEngines = 3;
inline constexpr int kLowestStreamPriority = 0;
inline constexpr int kGreatestStreamPriority = -5;
inline constexpr int kClusterSize = 8;
inline constexpr int kActiveClusters = 66;
inline constexpr int kRegistersPerKernel = 32;

// Byte `index` of the UUID of a physical device.
constexpr unsigned char uuid_byte(int physical, int index) {
  return static_cast<unsigned char>(0x10 + index + 16 * physical);
}

// The PCI bus of a physical device; domain and device are 0.
constexpr int pci_bus(int physical) { return physical + 1; }

}  // namespace simgpu::profile
