// Settings of the simulated GPU: environment variables SIMGPU_*, read once, at the first use. A bad value is
// named in one line on stderr, with what is accepted, and the default is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace simgpu {

struct Settings {
  int devices;  // SIMGPU_DEVICES: devices of the machine, 1..64 (0: a machine without any); default 8
  std::vector<int> visible;  // CUDA_VISIBLE_DEVICES applied to them: visible[ordinal] is the physical index
  // Bytes of each device of the machine: SIMGPU_VRAM_BYTES=[size][,device:size...], else SIMGPU_VRAM_GB;
  // default 80 GiB. A later entry wins.
  std::vector<size_t> memory;
  int alloc_us;        // SIMGPU_ALLOC_US: microseconds that cudaMalloc and cudaFree take; default 0
  size_t queue_depth;  // SIMGPU_QUEUE_DEPTH: launches a stream holds before the host blocks; default 1024
  int log_level;       // SIMGPU_LOG: 1 names each function at its first call; default 0
  bool quiet;          // SIMGPU_QUIET: say nothing about what is not supported; default off
  int64_t
      fault_launch;  // SIMGPU_FAULT_LAUNCH: this kernel launch (from 1) faults the device; default 0, none
};

// Bytes of a device by its index on the machine.
size_t device_bytes(int physical);

// The settings of this process. Thread-safe; the reference stays valid until the process ends.
const Settings& settings();

// Readers for further SIMGPU_* and SIMNCCL_* variables; each reads the environment at every call, so keep the
// result. An unset or empty variable gives the default.
int64_t integer_setting(const char* name, int64_t by_default, int64_t lowest, int64_t highest);
bool flag_setting(const char* name, bool by_default);

// Bytes: a number, also with a fraction, with an optional suffix K, M, G or T (powers of 1024), times `unit`
// where there is no suffix.
size_t size_setting(const char* name, size_t by_default, size_t unit);

// One of `choices`; the first is the default.
std::string choice_setting(const char* name, const std::vector<std::string>& choices);

}  // namespace simgpu
