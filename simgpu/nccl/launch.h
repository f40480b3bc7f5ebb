// A launch: the calls of one group on one communicator, which NCCL puts into one piece of work on the device.
#pragma once

#include <memory>
#include <vector>

#include "simgpu/nccl/collective.h"
#include "simgpu/nccl/p2p.h"

namespace simgpu::nccl {

struct Launch {
  explicit Launch(std::shared_ptr<Comm> on) : comm(std::move(on)) {}

  void add_stream(void* stream);

  // kInvalidUsage: a send to this rank itself without its receive in the group, or the other way;
  // kUnhandledCudaError: a stream of another device.
  Result check() const;

  std::shared_ptr<Comm> comm;
  std::vector<Collective> collectives;
  std::vector<Transfer> transfers;
  std::vector<void*> streams;  // that its calls named; it runs on the first, and the others wait for it
};

// Queues it on its streams; returns without waiting for it. On a capturing stream it becomes part of the
// graph and is executed at each replay.
Result queue_launch(const std::shared_ptr<Launch>& launch);

}  // namespace simgpu::nccl
