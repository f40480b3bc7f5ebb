// From the creation of a communicator to its end, in flight memory.
//
// The handle may be known late: NCCL fills `*where` at the outermost group end, and in non-blocking mode at any time
// until the communicator is ready.  Such creations wait here until the group ends, NCCL says that it is ready
// (ncclCommGetAsyncError), or a call comes with a handle that nobody knows.
//
// Threads: any.  Not the recorded path, but for known(): one table look-up.
#pragma once

#include <cstdint>

#include "core/flight/writer.h"
#include "interpose/calls/thread.h"
#include "interpose/comms/table.h"
#include "interpose/runtime/api.h"

namespace dshang::interpose::comms {

// What a creating function was asked for.
struct Plan {
  flight::CommOrigin origin = flight::CommOrigin::kUnknown;
  std::uint64_t id = 0;          // 0 = a split without colour: no communicator will come
  std::uint64_t nccl_hash = 0;
  std::uint64_t parent = 0;      // id
  std::int32_t rank = -1;        // -1 = known when it is ready
  std::int32_t size = 0;
  std::int32_t color = 0;
  std::uint32_t ordinal = 0;
  std::int32_t device = -1;      // -1 = the current one
  abi::CommOut where = nullptr;
};

struct Creation {
  flight::CommEntry* entry = nullptr;  // null = flight memory is full
  std::uint32_t index = 0;
  resolve::LibraryId library = resolve::kNoLibrary;
  std::uint64_t id = 0;
  abi::CommOut where = nullptr;
};

// Before the real call.
Creation begin_creation(const flight::Writer& writer, const Plan& plan, resolve::LibraryId library);

// After it.  `group`: of the library on this thread.
void finish_creation(const flight::Writer& writer, const Creation& creation, abi::Result result, calls::Group& group);

// The outermost group end returned `result`: the communicators that this thread created in the group are there.
void settle_group(const flight::Writer& writer, const calls::Group& group, abi::Result result);

// The communicator of a call, as find() gave it, or null: one that was never seen is entered as of unknown origin.
// Index kNoComm for a null handle.
struct Known {
  std::uint32_t index;
  std::uint64_t id;
};
Known known(const flight::Writer& writer, Live* live, abi::Comm comm, resolve::LibraryId library_of_caller);

// ncclCommGetAsyncError answered `error` for `comm`.
void note_async_error(const flight::Writer& writer, abi::Comm comm, abi::Result error);

// The order to fail that covers this communicator; null = none.
const runtime::Failure* failure_of(abi::Comm comm);

// Before the real call that finalizes, destroys or aborts it; after destroy and abort the handle is forgotten.
void note_end(const flight::Writer& writer, abi::Comm comm, flight::CommState state);

// How many communicators this process made before with this id, as this rank.
std::uint32_t earlier_with(const flight::Writer& writer, std::uint64_t id, std::int32_t rank);

// A number that tells this process from all others of the job.
std::uint64_t process_hash(const flight::Writer& writer);

// A new flight memory: nothing is known any more.
void forget_communicators();

}  // namespace dshang::interpose::comms
