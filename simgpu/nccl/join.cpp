#include "simgpu/nccl/join.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "simgpu/core/context.h"
#include "simgpu/core/log.h"
#include "simgpu/nccl/error.h"
#include "simgpu/nccl/options.h"

namespace simgpu::nccl {
namespace {

constexpr char kMagic[8] = "simnccl";
constexpr auto kRetry = std::chrono::milliseconds(20);

struct IdContent {
  char magic[8];
  SegmentName name;
};
static_assert(sizeof(IdContent) <= sizeof(UniqueId));

// Which of several simulated nodes this process is on: they share a machine, not their devices.
int node_number() {
  const char* group = getenv("GROUP_RANK");
  return group != nullptr ? atoi(group) : 0;
}

void wait_for_ever(Comm& comm) {
  while (!comm.closed()) std::this_thread::sleep_for(kRetry);
}

Result fail_on_shared_device(Comm& comm) {
  Segment& segment = comm.segment();
  for (int a = 0; a < comm.size(); ++a) {
    for (int b = a + 1; b < comm.size(); ++b) {
      const Member& first = segment.member(a);
      const Member& second = segment.member(b);
      if (first.node != second.node || first.physical_device != second.physical_device) continue;
      return fail(kInvalidUsage,
                  "ranks %d and %d of a communicator use the same device %d (no cudaSetDevice?)", a, b,
                  first.physical_device);
    }
  }
  return kOk;
}

}  // namespace

Result make_unique_id(UniqueId* id) {
  IdContent content{};
  memcpy(content.magic, kMagic, sizeof kMagic);
  if (!create_segment(&content.name))
    return fail(kSystemError, "no memory for a communicator: %s", strerror(errno));
  *id = {};
  memcpy(id->bytes, &content, sizeof content);
  return kOk;
}

bool segment_of(const UniqueId& id, SegmentName* name) {
  IdContent content;
  memcpy(&content, id.bytes, sizeof content);
  if (memcmp(content.magic, kMagic, sizeof kMagic) != 0) return false;
  *name = content.name;
  return true;
}

Result join(Comm& comm, const SegmentName& name, int rank, int size) {
  Segment& segment = comm.segment();
  switch (segment.map(name, size)) {
    case Segment::Status::kOk:
      break;
    case Segment::Status::kFailed:
      return fail(kSystemError, "cannot open the memory of a communicator in process %d: %s", name.pid,
                  strerror(errno));
    case Segment::Status::kGone:
      log(1, "rank %d of %d waits for a communicator whose process %d has it no longer", rank, size,
          name.pid);
      wait_for_ever(comm);
      return kInternalError;
    case Segment::Status::kOtherSize:
      log(1, "rank %d waits for a communicator of %d that others think has another size", rank, size);
      wait_for_ever(comm);
      return kInternalError;
  }
  Member& self = segment.member(rank);
  if (self.joined.exchange(1) != 0)
    return fail(kInvalidUsage, "rank %d of a communicator is taken twice", rank);
  self.pid = getpid();
  self.node = node_number();
  self.physical_device = physical_device(comm.device());
  comm.set_membership(rank, size, name.token);
  const uint32_t joined = segment.header().joined.fetch_add(1) + 1;
  comm.bell().ring();
  if (joined < static_cast<uint32_t>(size)) {
    const bool complete =
        comm.until_on_host([&] { return segment.header().joined.load() == static_cast<uint32_t>(size); });
    if (!complete) return kInternalError;
  }
  release_segment(name);
  tell_oracle("{\"what\": \"init\", \"comm\": \"%016" PRIx64
              "\", \"rank\": %d, \"size\": %d, \"device\": %d}",
              comm.id(), rank, size, comm.device());
  return fail_on_shared_device(comm);
}

}  // namespace simgpu::nccl
