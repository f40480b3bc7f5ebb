// Making and ending communicators, as NCCL's functions do it: inside a group at its end.
#pragma once

#include "simgpu/nccl/comm.h"
#include "simgpu/nccl/join.h"

namespace simgpu::nccl {

inline constexpr int kMostMembers = 1024;

// On the current device. *out is set at once, and to nullptr if a blocking communicator fails. kInProgress:
// not blocking, state() tells the end.
Result create_comm(Comm** out, const UniqueId& id, int size, int rank, const Config* config);

// ncclCommSplit: collective over the parent, also with kSplitNoColor.
Result split_comm(const std::shared_ptr<Comm>& parent, int color, int key, Comm** out, const Config* config);

// ncclCommShrink: collective over the members that stay.
Result shrink_comm(const std::shared_ptr<Comm>& parent, const int* excluded, int count, Comm** out,
                   const Config* config, int flags);

Result finalize_comm(const std::shared_ptr<Comm>& comm);  // returns when this member's launches are complete
Result destroy_comm(
    const std::shared_ptr<Comm>& comm);  // returns when all members have called it (or aborted)
Result abort_comm(const std::shared_ptr<Comm>& comm);

}  // namespace simgpu::nccl
