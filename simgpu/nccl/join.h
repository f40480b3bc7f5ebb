// How the members of a communicator find each other.
#pragma once

#include "simgpu/nccl/comm.h"

namespace simgpu::nccl {

// ncclGetUniqueId: makes the segment of a communicator to be.
Result make_unique_id(UniqueId* id);

// Where the segment of an id is. False: not an id of ours.
bool segment_of(const UniqueId& id, SegmentName* name);

// Joins as `rank` of `size`, and blocks until all have; a member that never comes, whose process is gone, or
// that has another idea of the size leaves the others waiting, as with NCCL. Errors: kInvalidUsage (the rank
// is taken, or two members use one device), kSystemError (the segment cannot be opened), kInternalError
// (stopped).
Result join(Comm& comm, const SegmentName& name, int rank, int size);

}  // namespace simgpu::nccl
