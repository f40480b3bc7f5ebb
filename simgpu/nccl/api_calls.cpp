// Exported functions: collectives, sends and receives, groups.
#include "simgpu/nccl/entry.h"

using namespace simgpu;
using namespace simgpu::nccl;

namespace {

struct Arguments {
  const char* name;
  const void* send;
  void* receive;
  size_t count;
  int type;
  int op;
  int root;
  Comm* comm;
  void* stream;
};

Result check_communicator(const char* name, const Comm& comm) {
  if (comm.revoked()) return fail(kInvalidUsage, "%s: the communicator was revoked", name);
  const Result error = comm.async_error();
  return error == kOk ? kOk : fail(error, "%s: the communicator has failed before", name);
}

// NCCL: src/misc/argcheck.cc. It does not look at pointers by default and faults on the device instead.
Result check(const Arguments& a, Comm& comm, const CallShape& shape) {
  if (a.root < 0 || a.root >= comm.size())
    return fail(kInvalidArgument, "%s: invalid root %d", a.name, a.root);
  if (!valid_type(a.type)) return fail(kInvalidArgument, "%s: invalid type %d", a.name, a.type);
  if (a.op < 0) return fail(kInvalidArgument, "%s: invalid reduce operation %d", a.name, a.op);
  if (a.count == 0) return kOk;
  if ((a.send == nullptr && reads_send(shape, comm.rank())) ||
      (a.receive == nullptr && writes_receive(shape, comm.rank()))) {
    return fail(kInvalidArgument, "%s: a buffer is NULL; on hardware this is an illegal memory access",
                a.name);
  }
  return kOk;
}

int collective(Kind kind, const Arguments& a) {
  return ready_entry(a.name, a.comm, [&](const std::shared_ptr<Comm>& comm) -> Result {
    if (const Result result = check_communicator(a.name, *comm); result != kOk) return result;
    // Only kinds without a root leave it 0, and only those without a reduction leave the operation a sum.
    Collective call{{kind, a.type, a.op, a.root, a.count},
                    static_cast<const char*>(a.send),
                    static_cast<char*>(a.receive),
                    {}};
    if (const Result result = check(a, *comm, call.shape); result != kOk) return result;
    if (a.op >= kFirstUserOp) {
      if (!comm->find_reduce_op(a.op, &call.scaling)) {
        return fail(kInvalidArgument, "%s: reduce operation %d is not one of this communicator", a.name,
                    a.op);
      }
      call.shape.reduce_op = kFirstUserOp;  // members have numbers of their own
    }
    if (a.count == 0) return kOk;  // NCCL discards empty collectives (src/enqueue.cc, taskAppend)
    return add_collective(comm, call, a.stream);
  });
}

int transfer(bool send, const Arguments& a) {
  return ready_entry(a.name, a.comm, [&](const std::shared_ptr<Comm>& comm) -> Result {
    if (const Result result = check_communicator(a.name, *comm); result != kOk) return result;
    if (a.root < 0 || a.root >= comm->size())
      return fail(kInvalidArgument, "%s: invalid peer %d", a.name, a.root);
    if (!valid_type(a.type)) return fail(kInvalidArgument, "%s: invalid type %d", a.name, a.type);
    if (a.count > 0 && a.receive == nullptr) {
      return fail(kInvalidArgument, "%s: the buffer is NULL; on hardware this is an illegal memory access",
                  a.name);
    }
    const Transfer one{send, a.root, static_cast<char*>(a.receive), a.count * element_bytes(a.type)};
    return add_transfer(comm, one, a.stream);
  });
}

}  // namespace

SIMGPU_API int ncclAllReduce(const void* send, void* receive, size_t count, int type, int op, Comm* comm,
                             void* stream) {
  return collective(kAllReduce, {"ncclAllReduce", send, receive, count, type, op, 0, comm, stream});
}
SIMNCCL_ALIAS(ncclAllReduce);

SIMGPU_API int ncclBroadcast(const void* send, void* receive, size_t count, int type, int root, Comm* comm,
                             void* stream) {
  return collective(kBroadcast, {"ncclBroadcast", send, receive, count, type, kSum, root, comm, stream});
}
SIMNCCL_ALIAS(ncclBroadcast);

SIMGPU_API int ncclBcast(void* buffer, size_t count, int type, int root, Comm* comm, void* stream) {
  return collective(kBroadcast, {"ncclBcast", buffer, buffer, count, type, kSum, root, comm, stream});
}
SIMNCCL_ALIAS(ncclBcast);

SIMGPU_API int ncclReduce(const void* send, void* receive, size_t count, int type, int op, int root,
                          Comm* comm, void* stream) {
  return collective(kReduce, {"ncclReduce", send, receive, count, type, op, root, comm, stream});
}
SIMNCCL_ALIAS(ncclReduce);

SIMGPU_API int ncclAllGather(const void* send, void* receive, size_t count, int type, Comm* comm,
                             void* stream) {
  return collective(kAllGather, {"ncclAllGather", send, receive, count, type, kSum, 0, comm, stream});
}
SIMNCCL_ALIAS(ncclAllGather);

SIMGPU_API int ncclReduceScatter(const void* send, void* receive, size_t count, int type, int op, Comm* comm,
                                 void* stream) {
  return collective(kReduceScatter, {"ncclReduceScatter", send, receive, count, type, op, 0, comm, stream});
}
SIMNCCL_ALIAS(ncclReduceScatter);

SIMGPU_API int ncclAlltoAll(const void* send, void* receive, size_t count, int type, Comm* comm,
                            void* stream) {
  return collective(kAllToAll, {"ncclAlltoAll", send, receive, count, type, kSum, 0, comm, stream});
}
SIMNCCL_ALIAS(ncclAlltoAll);

SIMGPU_API int ncclGather(const void* send, void* receive, size_t count, int type, int root, Comm* comm,
                          void* stream) {
  return collective(kGather, {"ncclGather", send, receive, count, type, kSum, root, comm, stream});
}
SIMNCCL_ALIAS(ncclGather);

SIMGPU_API int ncclScatter(const void* send, void* receive, size_t count, int type, int root, Comm* comm,
                           void* stream) {
  return collective(kScatter, {"ncclScatter", send, receive, count, type, kSum, root, comm, stream});
}
SIMNCCL_ALIAS(ncclScatter);

SIMGPU_API int ncclSend(const void* send, size_t count, int type, int peer, Comm* comm, void* stream) {
  return transfer(true,
                  {"ncclSend", nullptr, const_cast<void*>(send), count, type, kSum, peer, comm, stream});
}
SIMNCCL_ALIAS(ncclSend);

SIMGPU_API int ncclRecv(void* receive, size_t count, int type, int peer, Comm* comm, void* stream) {
  return transfer(false, {"ncclRecv", nullptr, receive, count, type, kSum, peer, comm, stream});
}
SIMNCCL_ALIAS(ncclRecv);

SIMGPU_API int ncclGroupStart() {
  return guarded("ncclGroupStart", kInternalError, [] {
    group_start();
    return kOk;
  });
}
SIMNCCL_ALIAS(ncclGroupStart);

SIMGPU_API int ncclGroupEnd() {
  return guarded("ncclGroupEnd", kInternalError, [] { return group_end(); });
}
SIMNCCL_ALIAS(ncclGroupEnd);

SIMGPU_API int ncclGroupSimulateEnd(void* info) {
  return guarded("ncclGroupSimulateEnd", kInternalError, [&] {
    (void)info;  // the estimated time stays "not known"
    return group_discard();
  });
}
SIMNCCL_ALIAS(ncclGroupSimulateEnd);
