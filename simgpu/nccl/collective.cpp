#include "simgpu/nccl/collective.h"

#include <chrono>
#include <cinttypes>
#include <thread>

#include "simgpu/core/bytes.h"
#include "simgpu/core/log.h"
#include "simgpu/nccl/error.h"
#include "simgpu/nccl/exchange.h"
#include "simgpu/nccl/faults.h"
#include "simgpu/nccl/match.h"
#include "simgpu/nccl/reduce.h"

namespace simgpu::nccl {
namespace {

constexpr const char* kNames[] = {"broadcast",      "reduce",     "all_reduce", "all_gather",
                                  "reduce_scatter", "all_to_all", "gather",     "scatter"};

// A communicator of one: NCCL copies, and scales.
void run_alone(const Collective& collective) {
  const CallShape& shape = collective.shape;
  const size_t bytes = shape.count * element_bytes(shape.type);
  if (collective.receive != collective.send) copy_bytes(collective.receive, collective.send, bytes);
  if (collective.scaling.used) {
    const void* on_device = collective.scaling.on_device;
    const void* scalar = on_device != nullptr ? on_device : collective.scaling.scalar;
    multiply(collective.receive, static_cast<const char*>(scalar), shape.count, shape.type);
  }
}

void stay(Comm& comm) {
  comm.until([] { return false; });
}

void delay(const Comm& comm, int milliseconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (!comm.stopped() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// What SIMNCCL_FAULT wants of a call before it begins. False: this member takes no part in it.
bool begins(Comm& comm, const Fault& fault) {
  tell_fault(comm, fault);
  switch (fault.kind) {
    case Fault::Kind::kDelay:
      delay(comm, fault.value);
      return true;
    case Fault::Kind::kError:
      comm.set_async_error(fail(static_cast<Result>(fault.value),
                                "call %" PRIu64 " of rank %d fails, as SIMNCCL_FAULT asks for", fault.call,
                                fault.rank));
      stay(comm);
      return false;
    case Fault::Kind::kDrop:
      comm.lose();
      return false;
    default:
      return true;
  }
}

}  // namespace

const char* kind_name(uint32_t kind) { return kNames[kind]; }

bool rooted(uint32_t kind) {
  return kind == kBroadcast || kind == kReduce || kind == kGather || kind == kScatter;
}

bool send_per_member(uint32_t kind) {
  return kind == kReduceScatter || kind == kAllToAll || kind == kScatter;
}

bool receive_per_member(uint32_t kind) { return kind == kAllGather || kind == kAllToAll || kind == kGather; }

bool reads_send(const CallShape& shape, int rank) {
  return (shape.kind != kBroadcast && shape.kind != kScatter) || rank == shape.root;
}

bool writes_receive(const CallShape& shape, int rank) {
  return (shape.kind != kReduce && shape.kind != kGather) || rank == shape.root;
}

void run_collective(Comm& comm, const Collective& collective) {
  if (comm.size() == 1) return run_alone(collective);
  if (comm.lost()) return stay(comm);
  const uint64_t call = comm.next_call();
  const Fault* fault = device_fault_of(comm, call);
  if (fault != nullptr && !begins(comm, *fault)) return;
  Match match(comm, collective.shape, call);
  Exchange exchange(comm, collective);
  if (!match.post(exchange.untouched())) return;
  bool complete = false;
  const bool finished = comm.until([&] {
    switch (match.look()) {
      case Match::Agreement::kNone:
        return true;
      case Match::Agreement::kCompletesAnyhow:
        return complete = true;
      case Match::Agreement::kSoFar:
        return complete = exchange.step(match);
    }
    return false;
  });
  if (finished && !complete) {
    match.report();
    stay(comm);
  }
  if (!complete) return;
  comm.self().done.store(call);
  comm.bell().ring();
  if (fault != nullptr && fault->kind == Fault::Kind::kStall) stay(comm);
}

}  // namespace simgpu::nccl
