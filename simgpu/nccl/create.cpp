#include "simgpu/nccl/create.h"

#include <unistd.h>

#include <cinttypes>
#include <thread>

#include "simgpu/core/context.h"
#include "simgpu/nccl/error.h"
#include "simgpu/nccl/gather.h"
#include "simgpu/nccl/group.h"
#include "simgpu/nccl/options.h"

namespace simgpu::nccl {
namespace {

bool is_blocking(const Config* config, bool by_default) {
  if (config == nullptr) return by_default;
  return config->blocking != 0;
}

Result check_config(const Config* config) {
  if (config == nullptr || config->magic == kConfigMagic) return kOk;
  return fail(kInvalidArgument, "the configuration was not initialised with NCCL_CONFIG_INITIALIZER");
}

Result no_memory() {
  return fail(kUnhandledCudaError, "out of device memory for a communicator (%zu MiB)",
              options().comm_bytes >> 20);
}

// Runs `make`, which joins the communicator, as it is due: in the group, or behind the caller's back.
Result start_making(const std::shared_ptr<Comm>& comm, Comm** out, Job make) {
  register_comm(comm);
  *out = comm.get();
  Job job = [comm, out, make = std::move(make)] {
    const Result result = make();
    comm->set_state(result);
    if (result != kOk && comm->blocking()) {
      comm->close();
      forget_comm(comm.get());
      *out = nullptr;
    }
    return result;
  };
  if (comm->blocking()) return add_job(std::move(job));
  std::thread([job = std::move(job), current = device()] {
    set_device(current);
    job();
  }).detach();
  return kInProgress;
}

// The members of a new communicator find its segment through their parent.
Result join_child(Comm& child, const Gathered& gathered) {
  if (!child.take_memory()) return no_memory();
  return join(child, gathered.segment, gathered.rank, gathered.size);
}

}  // namespace

Result create_comm(Comm** out, const UniqueId& id, int size, int rank, const Config* config) {
  if (out == nullptr) return fail(kInvalidArgument, "the place for the new communicator is NULL");
  if (size < 1 || rank < 0 || rank >= size)
    return fail(kInvalidArgument, "invalid rank %d of %d", rank, size);
  if (size > kMostMembers)
    return fail(kInvalidArgument, "the simulated NCCL has at most %d members", kMostMembers);
  if (const Result result = check_config(config); result != kOk) return result;
  SegmentName name;
  if (!segment_of(id, &name)) return fail(kInvalidArgument, "the unique id was not made by ncclGetUniqueId");
  const auto comm = std::make_shared<Comm>(device(), is_blocking(config, true));
  *out = nullptr;
  if (!comm->take_memory()) return no_memory();
  return start_making(comm, out, [comm, name, rank, size] { return join(*comm, name, rank, size); });
}

Result split_comm(const std::shared_ptr<Comm>& parent, int color, int key, Comm** out, const Config* config) {
  if (out == nullptr) return fail(kInvalidArgument, "the place for the new communicator is NULL");
  if (const Result result = check_config(config); result != kOk) return result;
  *out = nullptr;
  const uint64_t number = parent->next_split();
  if (color == kSplitNoColor) {
    return add_job([parent, number, key] {
      Gathered nobody;
      return gather_split(*parent, number, kSplitNoColor, key, &nobody);
    });
  }
  const auto child = std::make_shared<Comm>(parent->device(), is_blocking(config, parent->blocking()));
  return start_making(child, out, [parent, child, number, color, key] {
    Gathered gathered;
    const Result result = gather_split(*parent, number, color, key, &gathered);
    return result == kOk ? join_child(*child, gathered) : result;
  });
}

Result shrink_comm(const std::shared_ptr<Comm>& parent, const int* excluded, int count, Comm** out,
                   const Config* config, int flags) {
  if (out == nullptr) return fail(kInvalidArgument, "the place for the new communicator is NULL");
  if (const Result result = check_config(config); result != kOk) return result;
  std::vector<bool> stays(parent->size(), true);
  for (int i = 0; i < count; ++i) {
    if (excluded[i] < 0 || excluded[i] >= parent->size()) {
      return fail(kInvalidArgument, "rank %d to be excluded is not one of %d", excluded[i], parent->size());
    }
    stays[excluded[i]] = false;
  }
  if (count < 1 || !stays[parent->rank()]) {
    return fail(kInvalidArgument,
                count < 1 ? "no rank to be excluded" : "an excluded rank must not call ncclCommShrink");
  }
  if ((flags & kShrinkAbort) != 0) parent->revoke();
  *out = nullptr;
  const auto child = std::make_shared<Comm>(parent->device(), is_blocking(config, parent->blocking()));
  return start_making(child, out, [parent, child, stays, number = parent->next_shrink()] {
    Gathered gathered;
    const Result result = gather_shrink(*parent, number, stays, &gathered);
    return result == kOk ? join_child(*child, gathered) : result;
  });
}

Result finalize_comm(const std::shared_ptr<Comm>& comm) {
  if (!comm->begin_finalize()) return fail(kInvalidArgument, "a communicator was finalized twice");
  return add_job([comm] {
    comm->until([&] { return comm->idle(); });
    return kOk;
  });
}

Result destroy_comm(const std::shared_ptr<Comm>& comm) {
  if (forget_comm(comm.get()) == nullptr) return fail(kInvalidArgument, "a communicator was destroyed twice");
  return add_job([comm] {
    if (comm->state() != kOk) {  // it was never complete
      comm->close();
      comm->leave();
      return kOk;
    }
    comm->until([&] { return comm->idle(); });
    // A process with several members destroys them one after the other; only its last can wait for all.
    bool others_here = false;
    for (int rank = 0; rank < comm->size(); ++rank) {
      const Member& member = comm->segment().member(rank);
      others_here |= rank != comm->rank() && member.pid == getpid() && member.left.load() == 0;
    }
    comm->leave();
    if (!others_here) {
      const uint32_t all = static_cast<uint32_t>(comm->size());
      comm->until_on_host([&] { return comm->segment().header().left.load() == all; });
    }
    comm->close();
    return kOk;
  });
}

Result abort_comm(const std::shared_ptr<Comm>& comm) {
  if (forget_comm(comm.get()) == nullptr) return fail(kInvalidArgument, "a communicator was destroyed twice");
  tell_oracle("{\"what\": \"abort\", \"comm\": \"%016" PRIx64 "\", \"rank\": %d}", comm->id(), comm->rank());
  comm->close();
  comm->leave();
  return kOk;
}

}  // namespace simgpu::nccl
