// The rows of nccl.def against nccl.h; nccl_declared.inc (signatures.cmake) lists those that this header declares.
#include <nccl.h>

#include "interpose/symbols/signatures.h"

namespace dshang::interpose {

#include "nccl_declared.inc"

static_assert(sizeof(ncclUniqueId) == sizeof(abi::UniqueId));
static_assert(int{ncclInvalidUsage} == static_cast<int>(abi::Result::kInvalidUsage));
static_assert(int{ncclInProgress} == static_cast<int>(abi::Result::kInProgress));
static_assert(ncclInt8 == 0 && ncclUint8 == 1 && ncclInt32 == 2 && ncclUint32 == 3 && ncclInt64 == 4 &&
              ncclUint64 == 5 && ncclFloat16 == 6 && ncclFloat32 == 7 && ncclFloat64 == 8 && ncclBfloat16 == 9);
static_assert(ncclSum == 0 && ncclProd == 1 && ncclMax == 2 && ncclMin == 3 && ncclAvg == 4 && ncclNumOps == 5);
#if NCCL_VERSION_CODE >= 22400
static_assert(ncclFloat8e4m3 == 10 && ncclFloat8e5m2 == 11);
#endif
static_assert(NCCL_SPLIT_NOCOLOR == abi::kNoColor);

}  // namespace dshang::interpose
