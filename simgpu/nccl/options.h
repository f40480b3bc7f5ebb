// Settings of the simulated NCCL, read once, at the first use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "simgpu/nccl/fault_setting.h"

namespace simgpu::nccl {

struct Options {
  // SIMGPU_COMM_MB: device memory that a communicator takes, in MiB; default 256.
  size_t comm_bytes;
  // SIMNCCL_DATA_CAP: bytes of a collective on floats that are really moved, from the beginning of each
  // block; 0, the default, is all. Integers are always moved.
  size_t data_cap;
  // SIMNCCL_MISMATCH_COMPLETES: mismatched collectives of at most so many bytes on every member complete
  // without moving anything; default 0, none.
  size_t mismatch_completes;
  std::vector<Fault> faults;  // SIMNCCL_FAULT (fault_setting.h); default none
  // SIMNCCL_VERSION: what ncclGetVersion returns; default 23007.
  int version;
  // SIMNCCL_ORACLE: what really happened is appended to <value>.<pid>, a JSON line each.
  std::string oracle;
};

const Options& options();

// Appends a JSON line to the oracle's file, if there is one. For tests: what is written there is what a
// diagnosis has to find out without it.
__attribute__((format(printf, 1, 2))) void tell_oracle(const char* format, ...);

}  // namespace simgpu::nccl
