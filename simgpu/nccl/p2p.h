// Sends and receives of one launch. They progress together; those between the same two members keep their
// order.
//
// A send of at most 256 KiB completes without its receive if the mailbox is empty; a larger one when no more
// than that is left. A receive of another size than its send never completes.
#pragma once

#include <vector>

#include "simgpu/nccl/comm.h"

namespace simgpu::nccl {

struct Transfer {
  bool send;
  int peer;
  char* buffer;  // not written by a send
  size_t bytes;
};

// Executes them, in turn. Returns when all are complete, or the communicator was stopped.
void run_transfers(Comm& comm, const std::vector<Transfer>& transfers);

}  // namespace simgpu::nccl
