// Groups: between ncclGroupStart and the matching outermost ncclGroupEnd calls are collected, then made at
// once.
//
// What happens at the end is NCCL's order: first what makes and destroys communicators, all of it in
// parallel, then one launch for each communicator, in the order of their first calls. In a launch,
// collectives run one after the other, then sends and receives all together. A call outside of a group is a
// group of its own.
#pragma once

#include <functional>
#include <memory>

#include "simgpu/nccl/collective.h"
#include "simgpu/nccl/p2p.h"

namespace simgpu::nccl {

// Work on the host that may wait for other members.
using Job = std::function<Result()>;

void group_start();
Result group_end();      // the first error of the group, also of a call that was refused inside it
Result group_discard();  // ncclGroupSimulateEnd: nothing of it is done

// Inside a group these only collect. refuse() returns what it is given; an error makes the whole group fail.
Result add_job(Job job);
Result add_collective(std::shared_ptr<Comm> comm, const Collective& collective, void* stream);
Result add_transfer(std::shared_ptr<Comm> comm, const Transfer& transfer, void* stream);
Result refuse(Result result);

}  // namespace simgpu::nccl
