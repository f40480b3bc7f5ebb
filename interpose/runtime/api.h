// The seam between the wrappers (interpose/) and what keeps the process recording (interpose/runtime/).
//
// First part: what the wrappers call; interpose/runtime/ implements it.  Second part (namespace wrappers):
// what the runtime calls back; the wrappers implement it.
//
// Rules for everything in the first part: any thread; never throws; never leaves a CUDA error behind; may
// change errno (the wrappers keep it); calls no wrapped function by its public name (a wrapper would record
// it).
// Nothing here blocks, except wake() at its first successful call and what CUDA itself blocks in while a mark is
// placed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/flight/writer.h"

namespace dshang::interpose::runtime {

// ---- state of the process ----------------------------------------------------------------------------------

// Null while the process is inert, disabled, or a forked child that has not woken again.  Published (release)
// by wake() after wrappers::woke(); set to null by the child's fork handler.  A Writer that was published is
// never freed.
extern std::atomic<const flight::Writer*> recorder_slot;
inline const flight::Writer* recorder() { return recorder_slot.load(std::memory_order_acquire); }

// DSHANG_DISABLE=1, read once by the constructor: every wrapper passes straight through.
extern std::atomic<bool> disabled_slot;
inline bool disabled() { return disabled_slot.load(std::memory_order_relaxed); }

enum class WakeReason { kCommunicator, kSetDevice, kAllocation, kImport };

// Wakes the process unless it is awake, disabled, or the reason is not enough: kCommunicator always is, the
// others only in a process with RANK and WORLD_SIZE that is not a forked child.  Cheap when it declines:
// wrappers call it on every cudaSetDevice and allocation while recorder() is null.  When it returns,
// recorder() may still be null (no memory; another thread is waking, for which only a communicator waits, a second at
// most): the caller then does without a record.
void wake(WakeReason reason);

// ---- GPU progress ------------------------------------------------------------------------------------------

// Calls that one pair of marks covers: the records first..last (record numbers of the ring, not call numbers)
// of this process that have this stream, and, when `group` is not 0, this group.  A single call: first ==
// last, group 0.  Records of other threads, groups or streams may lie between.
struct CallSpan {
  std::uint64_t first, last;
  std::uint32_t group;
  void* stream;  // cudaStream_t
};

// The capture query.  True also when it is not answered; false where nothing is ever put on a stream: no driver,
// DSHANG_GPU_MARKS=0.
bool capturing(void* stream);

// What mark_start() hands to mark_end() or mark_cancel().  0 = nothing.
using Mark = std::uint64_t;

// Before the real call (grouped calls: before the outermost ncclGroupEnd, once a stream), on a stream that is
// not capturing.  Places the start mark (DSHANG_START_MARK) and sets kCallStartMarked on the covered records;
// from then on the poller sets kCallStarted and started_ns.  The records are complete already.
Mark mark_start(const CallSpan& calls);

// After the real call returned success.  Places the end mark and sets kCallMarked, or kCallProgressUnknown
// where it could not be placed; the poller then sets kCallDone and done_ns.  `mark` as mark_start() gave it,
// also when 0.
void mark_end(const CallSpan& calls, Mark mark);

// After the real call failed, or when its kernels may be launched later than now (ncclInProgress): the start
// mark is given up; no end mark.  The wrapper sets kCallFailed or kCallProgressUnknown itself.
void mark_cancel(const CallSpan& calls, Mark mark);

// cudaGraphLaunch succeeded.
void graph_launched();

// ---- memory ------------------------------------------------------------------------------------------------

// Works from the first instruction of the process on, in static memory, also while it is inert.
void allocated(flight::MemoryKind kind, const void* address, std::size_t bytes);

// Called before the real free, since the address may be given out again at once.  The ledger looks the
// address up whatever its kind (cudaFree also frees managed and pool memory); `kind` is what the function's
// name says.  Returns what was forgotten, bytes 0 = an unknown address; where the real free then fails the
// wrapper calls restored() with it, which is not counted as an allocation.
struct Freed {
  flight::MemoryKind kind = flight::MemoryKind::kDevice;
  std::size_t bytes = 0;
};
Freed freed(flight::MemoryKind kind, const void* address);
void restored(const Freed& freed, const void* address);

// The real call failed with `result` (cudaError_t); recognises the allocator's retry by what follows.
void allocation_failed(flight::MemoryKind kind, std::size_t bytes, int result);

// Lives around a call that takes or gives back device memory and all that is said of it here: meanwhile the ledger
// and the device do not agree.
class MemoryChange {
 public:
  MemoryChange() { begins(); }
  ~MemoryChange() { ends(); }
  MemoryChange(const MemoryChange&) = delete;
  MemoryChange& operator=(const MemoryChange&) = delete;

 private:
  static void begins();
  static void ends();
};

// A call that took or gave back memory, from its beginning to its end; after allocated(), freed() or
// allocation_failed() of the same thread.
void memory_call(std::uint64_t begin_ns, std::uint64_t end_ns);

// Free and total bytes of the current device, asked around the creation of a communicator.  False = not
// known.
bool device_memory(std::uint64_t* free_bytes, std::uint64_t* total_bytes);

// Ordinal of the current device, -1 = not known.
int current_device();

// cudaGetDriverEntryPoint[ByVersion] succeeded for `name`: returns what the host shall get, `real` itself for
// every name that is not wrapped.  `real` is what a later call of the returned function calls.
void* replace_driver_entry(const char* name, void* real);

// ---- the order to fail -------------------------------------------------------------------------------------

// The monitor's order (DSHANG_ON_HANG=fail).
struct Failure {
  std::uint32_t comms = 0;  // communicators of flight memory up to here fail; later ones are a new beginning
  bool rank_is_gone = false;
  char why[512] = "";  // one sentence
};

// The newest order, null = none.  Valid for good.
const Failure* failure();

// ---- handing over ------------------------------------------------------------------------------------------

// A function that makes communicators is about to return to the host: the first time, waits until the flight
// memory is handed over to the monitor, at most a second (helper.h).  After that, and in a child, nothing.
void hand_over_with_first_communicator();

// ---- the process's end -------------------------------------------------------------------------------------

// From the wrappers of _exit, _Exit and abort, before the real one.  Async-signal-safe.  Acts only in the
// process that owns the flight memory: a child of vfork() runs in its parent's memory and calls _exit().
void ending(flight::EndingKind kind, int code);

// Before a process ends by its own or another's will: waits, at most a second, where its memory is just about to be handed
// over to a monitor that is being started (helper.h).  Nothing in a child.  Async-signal-safe.
void hand_over_before_end();

}  // namespace dshang::interpose::runtime

namespace dshang::interpose::wrappers {

// What CallRecord::op indexes, for Writer::format().
const flight::OpInfo* ops();
std::uint32_t op_count();

// Called by wake() on the new flight memory before recorder() is published: names are interned, everything
// remembered of an earlier flight memory (communicators, counters, groups) is void.  One thread.
void woke(const flight::Writer& writer);

// Whether `address` lies in libdshang.so itself.
bool is_own_address(const void* address);

// The real function behind a wrapped one as this process would have it without dshang ("cudaMemGetInfo" and
// other names that are not wrapped work too); null = not loaded.  Not for the recorded path.
void* real_function(const char* name);

// Whether any wrapped function of NCCL was ever called in this process (for the "not intercepting" line).
bool nccl_seen();

}  // namespace dshang::interpose::wrappers
