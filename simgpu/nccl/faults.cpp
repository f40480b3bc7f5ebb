#include "simgpu/nccl/faults.h"

#include <unistd.h>

#include <cinttypes>
#include <csignal>

#include "simgpu/core/log.h"
#include "simgpu/core/stream.h"
#include "simgpu/nccl/launch.h"
#include "simgpu/nccl/options.h"

namespace simgpu::nccl {
namespace {

using Kind = Fault::Kind;

bool on_host(Kind kind) { return kind == Kind::kKernel || kind == Kind::kKill; }

void make_host_fault(const Launch& launch, const Fault& fault) {
  tell_fault(*launch.comm, fault);
  if (fault.kind == Kind::kKill) kill(getpid(), SIGKILL);
  if (const Error error = hold_stream(launch.comm->device(), launch.streams.front()))
    log(0, "SIMNCCL_FAULT: no kernel can be put in front of the call: CUDA error %d", error);
}

}  // namespace

void make_host_faults(const Launch& launch) {
  if (launch.comm->size() == 1) return;
  for (size_t i = 0; i < launch.collectives.size(); ++i) {
    const uint64_t call = launch.comm->next_made();
    for (const Fault& fault : options().faults) {
      if (on_host(fault.kind) && fault.call == call && fault.rank == launch.comm->rank())
        make_host_fault(launch, fault);
    }
  }
}

const Fault* device_fault_of(const Comm& comm, uint64_t call) {
  for (const Fault& fault : options().faults) {
    if (!on_host(fault.kind) && fault.call == call && fault.rank == comm.rank()) return &fault;
  }
  return nullptr;
}

void tell_fault(const Comm& comm, const Fault& fault) {
  log(1, "communicator %016" PRIx64 " call %" PRIu64 " rank %d: %s, as SIMNCCL_FAULT asks for", comm.id(),
      fault.call, fault.rank, fault_name(fault.kind));
  tell_oracle("{\"what\": \"fault\", \"comm\": \"%016" PRIx64 "\", \"rank\": %d, \"call\": %" PRIu64
              ", \"kind\": \"%s\"}",
              comm.id(), fault.rank, fault.call, fault_name(fault.kind));
}

}  // namespace simgpu::nccl
