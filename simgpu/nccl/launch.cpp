#include "simgpu/nccl/launch.h"

#include <algorithm>

#include "simgpu/core/context.h"
#include "simgpu/core/ledger.h"
#include "simgpu/core/log.h"
#include "simgpu/core/stream.h"
#include "simgpu/nccl/error.h"
#include "simgpu/nccl/faults.h"

namespace simgpu::nccl {
namespace {

// Where a launch meets the streams that it does not run on itself.
struct Meeting {
  std::atomic<size_t> arrived{0};
  std::atomic<bool> over{false};
};

// On hardware a kernel that leaves its memory, or is given memory of the host that CUDA does not know, takes
// its device with it.
bool reaches(const Comm& comm, const char* what, const void* buffer, size_t bytes) {
  if (bytes == 0 || covered(buffer, bytes)) return true;
  log(0, "rank %d: the %s buffer %p of a call of NCCL is not %zu bytes of CUDA's memory; device %d faults",
      comm.rank(), what, buffer, bytes, comm.device());
  fault_device(comm.device(), kIllegalAddress);
  return false;
}

bool reaches(const Comm& comm, const Collective& collective) {
  const CallShape& shape = collective.shape;
  const size_t block = shape.count * element_bytes(shape.type);
  const size_t members = static_cast<size_t>(comm.size());
  const size_t send =
      reads_send(shape, comm.rank()) ? block * (send_per_member(shape.kind) ? members : 1) : 0;
  const size_t receive =
      writes_receive(shape, comm.rank()) ? block * (receive_per_member(shape.kind) ? members : 1) : 0;
  return reaches(comm, "send", collective.send, send) &&
         reaches(comm, "receive", collective.receive, receive);
}

bool reaches(const Launch& launch) {
  for (const Collective& collective : launch.collectives) {
    if (!reaches(*launch.comm, collective)) return false;
  }
  for (const Transfer& transfer : launch.transfers) {
    if (!reaches(*launch.comm, transfer.send ? "send" : "receive", transfer.buffer, transfer.bytes))
      return false;
  }
  return true;
}

void execute(const Launch& launch) {
  if (!reaches(launch)) return;

  for (const Collective& collective : launch.collectives) {
    if (launch.comm->stopped()) return;
    run_collective(*launch.comm, collective);
  }
  if (!launch.transfers.empty() && !launch.comm->stopped()) run_transfers(*launch.comm, launch.transfers);
}

void execute_in_turn(const Launch& launch, uint64_t ticket) {
  Comm& comm = *launch.comm;
  if (comm.begin_turn(ticket)) {
    execute(launch);
    comm.end_turn();
  }
  comm.end_ticket(ticket);
}

Result queue_on_one(const std::shared_ptr<Launch>& launch, uint64_t ticket) {
  const auto run = [launch, ticket] { execute_in_turn(*launch, ticket); };
  const Error error = enqueue_on(launch->comm->device(), launch->streams.front(), run, Run::kOnWorker);
  return error == kSuccess ? kOk
                           : fail(kUnhandledCudaError, "cannot launch on the stream: CUDA error %d", error);
}

Result queue_on_several(const std::shared_ptr<Launch>& launch, uint64_t ticket) {
  const auto meeting = std::make_shared<Meeting>();
  const size_t others = launch->streams.size() - 1;
  const int device = launch->comm->device();
  for (size_t i = 1; i <= others; ++i) {
    const auto wait = [launch, meeting] {
      meeting->arrived.fetch_add(1);
      launch->comm->bell().ring();
      launch->comm->until([&] { return meeting->over.load(); });
    };
    if (const Error error = enqueue_on(device, launch->streams[i], wait, Run::kOnWorker)) {
      meeting->over.store(true);
      launch->comm->bell().ring();
      return fail(kUnhandledCudaError, "cannot launch on the stream: CUDA error %d", error);
    }
  }
  const auto run = [launch, meeting, ticket, others] {
    launch->comm->until([&] { return meeting->arrived.load() == others; });
    execute_in_turn(*launch, ticket);
    meeting->over.store(true);
    launch->comm->bell().ring();
  };
  const Error error = enqueue_on(device, launch->streams.front(), run, Run::kOnWorker);
  if (error == kSuccess) return kOk;
  meeting->over.store(true);
  launch->comm->bell().ring();
  return fail(kUnhandledCudaError, "cannot launch on the stream: CUDA error %d", error);
}

}  // namespace

void Launch::add_stream(void* stream) {
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
}

Result Launch::check() const {
  for (void* stream : streams) {
    if (!belongs_to(comm->device(), stream))
      return fail(kUnhandledCudaError, "a stream of another device than the communicator's, which is %d",
                  comm->device());
  }
  int balance = 0;
  for (const Transfer& transfer : transfers) {
    if (transfer.peer == comm->rank()) balance += transfer.send ? 1 : -1;
  }
  if (balance == 0) return kOk;
  return fail(kInvalidUsage, "rank %d %s itself without the matching %s in the same group", comm->rank(),
              balance > 0 ? "sends to" : "receives from", balance > 0 ? "receive" : "send");
}

Result queue_launch(const std::shared_ptr<Launch>& launch) {
  Comm& comm = *launch->comm;
  std::lock_guard lock(comm.launch_mutex());
  bool captured = false;
  for (void* stream : launch->streams) captured |= is_capturing(stream);
  if (captured) {
    // A graph replays on one stream, so the streams of the group need no meeting.
    return queue_on_one(launch, Comm::kNoTicket);
  }
  make_host_faults(*launch);
  const uint64_t ticket = comm.take_ticket();
  const Result result =
      launch->streams.size() == 1 ? queue_on_one(launch, ticket) : queue_on_several(launch, ticket);
  if (result != kOk) comm.end_ticket(ticket);
  return result;
}

}  // namespace simgpu::nccl
