// Faults on demand: what is to happen to a collective of one member.
//
//   SIMNCCL_FAULT=rank:call:kind[:value][,...]
//
// `rank` is the member's rank in any communicator. `call` counts, from 1, the collectives of that rank in the
// communicator; what NCCL discards (no elements, one member) and sends and receives do not count.
//
//   stall         never completes on that rank, though it does for the others
//   kernel        does not begin: a kernel in front of it, on its stream, never ends; so nobody completes it
//   drop          is lost: complete on that rank at once, but the others wait for it, and so do later calls
//   there delay[:ms]    begins so many milliseconds late, 1000 by default error[:code]  never completes;
//   ncclCommGetAsyncError says the code, 6 (ncclRemoteError) by default kill          that rank ends by
//   SIGKILL when it makes the call
#pragma once

#include <cstdint>
#include <vector>

namespace simgpu::nccl {

struct Fault {
  enum class Kind { kStall, kKernel, kDrop, kDelay, kError, kKill };

  int rank;
  uint64_t call;
  Kind kind;
  int value;  // of kDelay and kError
};

// False: not in the form above; `*faults` is as it was.
bool parse_faults(const char* text, std::vector<Fault>* faults);
const char* fault_name(Fault::Kind kind);

}  // namespace simgpu::nccl
