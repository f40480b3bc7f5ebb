// How some members of a communicator agree on a new one, on the host and without the program's help.
#pragma once

#include <vector>

#include "simgpu/nccl/comm.h"

namespace simgpu::nccl {

struct Gathered {
  SegmentName segment;
  int rank;
  int size;
};

// Both block until all that take part have called; kInternalError: the parent was closed first, kSystemError:
// no memory for the new segment. With kSplitNoColor nothing is gathered. `number` is next_split() or
// next_shrink() of the parent, taken when the program made the call: gatherings happen in that order.
Result gather_split(Comm& parent, uint64_t number, int color, int key, Gathered* gathered);
Result gather_shrink(Comm& parent, uint64_t number, const std::vector<bool>& stays, Gathered* gathered);

}  // namespace simgpu::nccl
