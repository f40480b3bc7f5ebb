// One collective call of one member, executed on the stream's worker.
//
// Every member that contributes cuts its data into chunks and puts them into its ring in the segment; every
// member that needs them reads them from there. A member is done when it has put everything into its ring and
// has read what it needs. So the root of a broadcast and the leaves of a reduce finish before the others have
// come, as far as the ring holds (1 MiB, 8 chunks), and everything else waits for all members, as on
// hardware.
//
// Calls that do not agree (CallShape) never complete: whoever comes later sees it and stays; whoever could
// finish before the other came meets it at the next call that needs all members.
#pragma once

#include "simgpu/nccl/comm.h"

namespace simgpu::nccl {

enum Kind : uint32_t {
  kBroadcast,
  kReduce,
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kGather,
  kScatter,
};

const char* kind_name(uint32_t kind);

// Whether the call has a root.
bool rooted(uint32_t kind);

// Whether the send or the receive buffer holds a block of `count` elements for every member (else: one
// block).
bool send_per_member(uint32_t kind);
bool receive_per_member(uint32_t kind);

// Whether NCCL looks at the send or the receive buffer of this rank.
bool reads_send(const CallShape& shape, int rank);
bool writes_receive(const CallShape& shape, int rank);

struct Collective {
  CallShape shape;
  const char* send;
  char* receive;
  PreMultiply scaling;
};

// Executes a call, in turn. Returns when it is complete on this member, or the communicator was stopped.
void run_collective(Comm& comm, const Collective& collective);

}  // namespace simgpu::nccl
