// The numbers and structures of NCCL's C interface that the simulated NCCL needs. Own declarations, so that
// it builds without nccl.h; tests/unit/simnccl/test_abi.cpp compares them with the real header where that is
// installed. Values: nccl.h of NCCL 2.30.7.
#pragma once

#include <cstddef>
#include <cstdint>

namespace simgpu::nccl {

enum Result : int {
  kOk = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};

enum DataType : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kUint32 = 3,
  kInt64 = 4,
  kUint64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
  kFloat8e4m3 = 10,
  kFloat8e5m2 = 11,
  kDataTypes = 12,
};

enum ReduceOp : int {
  kSum = 0,
  kProd = 1,
  kMax = 2,
  kMin = 3,
  kAvg = 4,
  kFirstUserOp = 5,  // operations made by ncclRedOpCreatePreMulSum have this number and up
};

enum ScalarResidence : int { kScalarDevice = 0, kScalarHostImmediate = 1 };

inline constexpr int kVersion = 23007;
inline constexpr int kSplitNoColor = -1;
inline constexpr int kShrinkAbort = 1;
inline constexpr unsigned kConfigMagic = 0xcafebeef;

struct UniqueId {
  char bytes[128];
};

// The beginning of ncclConfig_t, which is the same in every version.
struct Config {
  size_t size;
  unsigned magic;
  unsigned version;
  int blocking;  // 0: not blocking; anything else, also INT_MIN for "not set": blocking
};

inline bool valid_type(int type) { return type >= 0 && type < kDataTypes; }

inline bool is_float(int type) { return type >= kFloat16; }

inline size_t element_bytes(int type) {
  switch (type) {
    case kInt8:
    case kUint8:
    case kFloat8e4m3:
    case kFloat8e5m2:
      return 1;
    case kFloat16:
    case kBfloat16:
      return 2;
    case kInt32:
    case kUint32:
    case kFloat32:
      return 4;
    default:
      return 8;
  }
}

}  // namespace simgpu::nccl
