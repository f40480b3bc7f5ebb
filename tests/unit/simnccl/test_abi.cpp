// The numbers of simgpu/nccl/abi.h against the real header.
#ifdef SIMNCCL_HAS_HEADER
#include <nccl.h>

#include <cstddef>

#include "simgpu/nccl/abi.h"

namespace sim = simgpu::nccl;

static_assert(static_cast<int>(ncclUnhandledCudaError) == sim::kUnhandledCudaError);
static_assert(static_cast<int>(ncclSystemError) == sim::kSystemError);
static_assert(static_cast<int>(ncclInternalError) == sim::kInternalError);
static_assert(static_cast<int>(ncclInvalidArgument) == sim::kInvalidArgument);
static_assert(static_cast<int>(ncclInvalidUsage) == sim::kInvalidUsage);
static_assert(static_cast<int>(ncclRemoteError) == sim::kRemoteError);
static_assert(static_cast<int>(ncclInProgress) == sim::kInProgress);
static_assert(static_cast<int>(ncclInt8) == sim::kInt8 && static_cast<int>(ncclUint8) == sim::kUint8);
static_assert(static_cast<int>(ncclInt32) == sim::kInt32 && static_cast<int>(ncclUint32) == sim::kUint32);
static_assert(static_cast<int>(ncclInt64) == sim::kInt64 && static_cast<int>(ncclUint64) == sim::kUint64);
static_assert(static_cast<int>(ncclFloat16) == sim::kFloat16 &&
              static_cast<int>(ncclFloat32) == sim::kFloat32);
static_assert(static_cast<int>(ncclFloat64) == sim::kFloat64 &&
              static_cast<int>(ncclBfloat16) == sim::kBfloat16);
static_assert(static_cast<int>(ncclSum) == sim::kSum && static_cast<int>(ncclProd) == sim::kProd);
static_assert(static_cast<int>(ncclMax) == sim::kMax && static_cast<int>(ncclMin) == sim::kMin);
static_assert(static_cast<int>(ncclAvg) == sim::kAvg && static_cast<int>(ncclNumOps) == sim::kFirstUserOp);
static_assert(static_cast<int>(ncclScalarDevice) == sim::kScalarDevice);
static_assert(static_cast<int>(ncclScalarHostImmediate) == sim::kScalarHostImmediate);
static_assert(sizeof(ncclUniqueId) == sizeof(sim::UniqueId));
static_assert(offsetof(ncclConfig_t, magic) == offsetof(sim::Config, magic));
static_assert(offsetof(ncclConfig_t, version) == offsetof(sim::Config, version));
static_assert(offsetof(ncclConfig_t, blocking) == offsetof(sim::Config, blocking));
static_assert(NCCL_SPLIT_NOCOLOR == sim::kSplitNoColor);
#ifdef NCCL_API_MAGIC
static_assert(NCCL_API_MAGIC == sim::kConfigMagic);
#endif
#endif
