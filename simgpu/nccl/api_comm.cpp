// Exported functions: communicators.
#include "simgpu/nccl/create.h"
#include "simgpu/nccl/entry.h"
#include "simgpu/nccl/options.h"

using namespace simgpu;
using namespace simgpu::nccl;

SIMGPU_API int ncclGetVersion(int* version) {
  return guarded("ncclGetVersion", kInternalError, [&] {
    if (version == nullptr) return kInvalidArgument;
    *version = options().version;
    return kOk;
  });
}
SIMNCCL_ALIAS(ncclGetVersion);

SIMGPU_API int ncclGetUniqueId(UniqueId* id) {
  return guarded("ncclGetUniqueId", kInternalError, [&] {
    if (id == nullptr) return fail(kInvalidArgument, "ncclGetUniqueId: the place for the id is NULL");
    return make_unique_id(id);
  });
}
SIMNCCL_ALIAS(ncclGetUniqueId);

SIMGPU_API int ncclCommInitRank(Comm** comm, int size, UniqueId id, int rank) {
  return entry("ncclCommInitRank", [&] { return refuse(create_comm(comm, id, size, rank, nullptr)); });
}
SIMNCCL_ALIAS(ncclCommInitRank);

SIMGPU_API int ncclCommInitRankConfig(Comm** comm, int size, UniqueId id, int rank, const Config* config) {
  return entry("ncclCommInitRankConfig", [&] { return refuse(create_comm(comm, id, size, rank, config)); });
}
SIMNCCL_ALIAS(ncclCommInitRankConfig);

// Several ids only make a large job's start faster; the first is enough.
SIMGPU_API int ncclCommInitRankScalable(Comm** comm, int size, int rank, int ids, const UniqueId* id,
                                        const Config* config) {
  return entry("ncclCommInitRankScalable", [&] {
    if (ids < 1 || ids > size || id == nullptr) {
      return refuse(fail(kInvalidArgument, "ncclCommInitRankScalable: %d ids for %d ranks", ids, size));
    }
    return refuse(create_comm(comm, id[0], size, rank, config));
  });
}
SIMNCCL_ALIAS(ncclCommInitRankScalable);

SIMGPU_API int ncclCommInitAll(Comm** comms, int size, const int* devices) {
  return entry("ncclCommInitAll", [&]() -> Result {
    if (comms == nullptr || size < 0)
      return refuse(fail(kInvalidArgument, "ncclCommInitAll: invalid arguments"));
    for (int i = 0; i < size; ++i) {
      const int device = devices != nullptr ? devices[i] : i;
      if (!valid_device(device))
        return refuse(fail(kUnhandledCudaError, "ncclCommInitAll: no device %d", device));
      for (int j = 0; j < i; ++j) {
        if (devices == nullptr || devices[j] != device) continue;
        return refuse(fail(kInvalidUsage, "ncclCommInitAll: device %d is named twice", device));
      }
    }
    UniqueId id;
    if (const Result result = make_unique_id(&id); result != kOk) return refuse(result);
    group_start();
    for (int i = 0; i < size; ++i) {
      DeviceScope scope(devices != nullptr ? devices[i] : i);
      refuse(create_comm(&comms[i], id, size, i, nullptr));
    }
    return group_end();
  });
}
SIMNCCL_ALIAS(ncclCommInitAll);

SIMGPU_API int ncclCommSplit(Comm* comm, int color, int key, Comm** child, const Config* config) {
  return ready_entry("ncclCommSplit", comm, [&](const std::shared_ptr<Comm>& parent) {
    return split_comm(parent, color, key, child, config);
  });
}
SIMNCCL_ALIAS(ncclCommSplit);

SIMGPU_API int ncclCommShrink(Comm* comm, const int* excluded, int count, Comm** child, const Config* config,
                              int flags) {
  return ready_entry("ncclCommShrink", comm, [&](const std::shared_ptr<Comm>& parent) {
    return shrink_comm(parent, excluded, count, child, config, flags);
  });
}
SIMNCCL_ALIAS(ncclCommShrink);

// For these three, NULL is success (NCCL: src/init.cc).
SIMGPU_API int ncclCommFinalize(Comm* comm) {
  if (comm == nullptr) return kOk;
  return ready_entry("ncclCommFinalize", comm, [](const auto& found) { return finalize_comm(found); });
}
SIMNCCL_ALIAS(ncclCommFinalize);

SIMGPU_API int ncclCommDestroy(Comm* comm) {
  if (comm == nullptr) return kOk;
  return comm_entry("ncclCommDestroy", comm, [](const auto& found) { return destroy_comm(found); });
}
SIMNCCL_ALIAS(ncclCommDestroy);

SIMGPU_API int ncclCommAbort(Comm* comm) {
  if (comm == nullptr) return kOk;
  return comm_entry("ncclCommAbort", comm, [](const auto& found) { return abort_comm(found); });
}
SIMNCCL_ALIAS(ncclCommAbort);

SIMGPU_API int ncclCommRevoke(Comm* comm, int flags) {
  if (comm == nullptr) return kOk;
  return ready_entry("ncclCommRevoke", comm, [&](const std::shared_ptr<Comm>& found) {
    if (flags != 0 || found->revoked() || !found->begin_finalize()) {
      return fail(kInvalidArgument,
                  "ncclCommRevoke: flags, or the communicator is revoked or finalized already");
    }
    found->revoke();
    return kOk;
  });
}
SIMNCCL_ALIAS(ncclCommRevoke);

SIMGPU_API int ncclCommGetAsyncError(Comm* comm, int* error) {
  return comm_entry("ncclCommGetAsyncError", comm, [&](const std::shared_ptr<Comm>& found) {
    if (error == nullptr) return kInvalidArgument;
    *error = found->state() == kOk ? found->async_error() : found->state();
    return kOk;
  });
}
SIMNCCL_ALIAS(ncclCommGetAsyncError);

SIMGPU_API int ncclCommCount(Comm* comm, int* count) {
  return ready_entry("ncclCommCount", comm, [&](const std::shared_ptr<Comm>& found) {
    if (count == nullptr) return kInvalidArgument;
    *count = found->size();
    return kOk;
  });
}
SIMNCCL_ALIAS(ncclCommCount);

SIMGPU_API int ncclCommUserRank(Comm* comm, int* rank) {
  return ready_entry("ncclCommUserRank", comm, [&](const std::shared_ptr<Comm>& found) {
    if (rank == nullptr) return kInvalidArgument;
    *rank = found->rank();
    return kOk;
  });
}
SIMNCCL_ALIAS(ncclCommUserRank);

SIMGPU_API int ncclCommCuDevice(Comm* comm, int* device) {
  return ready_entry("ncclCommCuDevice", comm, [&](const std::shared_ptr<Comm>& found) {
    if (device == nullptr) return kInvalidArgument;
    *device = found->device();
    return kOk;
  });
}
SIMNCCL_ALIAS(ncclCommCuDevice);
