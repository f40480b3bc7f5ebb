#include "interpose/comms/life.h"

#include <stdio.h>
#include <string.h>

#include "core/flight/hash.h"
#include "core/rank/memory_read.h"
#include "core/rank/pyframes.h"
#include "interpose/calls/numbers.h"
#include "interpose/calls/record.h"
#include "interpose/comms/identity.h"
#include "interpose/comms/versions.h"
#include "interpose/runtime/log.h"

namespace dshang::interpose::comms {
namespace {

using abi::Comm;
using abi::Result;
using flight::CommState;

// Creations whose handle is not known yet.
struct Waiting {
  enum State : std::uint32_t { kFree, kClaimed, kInGroup, kBackground };
  std::atomic<std::uint32_t> state;
  std::uint32_t group;  // ordinal, where kInGroup
  Creation creation;
};
constexpr unsigned kWaiting = 128;
Waiting waiting[kWaiting];

std::atomic<std::uint32_t> unknown_so_far{0};

// How large the device is, once for each size: "device.memory_total", in bytes.
void note_device_total(const flight::Writer& writer, std::uint64_t total) {
  static std::atomic<std::uint64_t> noted{0};
  if (noted.exchange(total, std::memory_order_relaxed) == total) return;
  char text[24];
  snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(total));
  writer.fact("device.memory_total", text);
}

void wait_for_handle(const Creation& creation, Waiting::State state, std::uint32_t group) {
  for (Waiting& slot : waiting) {
    std::uint32_t free = Waiting::kFree;
    if (!slot.state.compare_exchange_strong(free, Waiting::kClaimed, std::memory_order_acquire)) continue;
    slot.group = group;
    slot.creation = creation;
    slot.state.store(state, std::memory_order_release);
    return;
  }
  DSHANG_LOG_ONCE("more than %u communicators are being created at a time; the others lose their identity", kWaiting);
}

// Rank and size by NCCL's own word, of a communicator that is ready.
void ask_position(resolve::LibraryId library, Comm comm, flight::CommEntry* entry) {
  using Getter = Result (*)(Comm, int*);
  int rank = -1, size = 0;
  auto get_rank = reinterpret_cast<Getter>(resolve::named(library, "ncclCommUserRank"));
  auto get_size = reinterpret_cast<Getter>(resolve::named(library, "ncclCommCount"));
  if (get_rank && get_rank(comm, &rank) == Result::kSuccess) entry->rank = rank;
  if (get_size && get_size(comm, &size) == Result::kSuccess) entry->size = size;
}

void note_position(const flight::Writer& writer, const flight::CommEntry& entry) {
  flight::Header& header = writer.header();
  __atomic_store_n(&header.provisional, 0u, __ATOMIC_RELAXED);
  std::uint32_t none = 0;
  if (entry.origin != flight::CommOrigin::kInitAll && entry.size == header.world_size && entry.rank >= 0) {
    auto own = static_cast<std::uint32_t>(entry.rank) + 1;
    header.world_rank.compare_exchange_strong(none, own, std::memory_order_relaxed);
  }
}

void become_ready(const flight::Writer& writer, flight::CommEntry* entry, resolve::LibraryId library, Comm comm) {
  if (!entry) return;
  ask_position(library, comm, entry);
  std::uint64_t total;
  if (runtime::device_memory(&entry->free_after, &total)) {
    note_device_total(writer, total);
  } else {
    entry->free_after = flight::kUnknownBytes;
  }
  entry->ready_ns = calls::now_ns();
  note_position(writer, *entry);
  entry->state.store(CommState::kReady, std::memory_order_release);
}

void handle_known(const flight::Writer& writer, const Creation& creation, Comm comm, bool ready) {
  if (creation.entry) creation.entry->handle = reinterpret_cast<std::uint64_t>(comm);
  if (ready) become_ready(writer, creation.entry, creation.library, comm);
  add(comm, creation.id, creation.entry ? creation.index : calls::kNoComm, creation.library, ready);
}

void without_communicator(const Creation& creation, CommState state) {
  if (!creation.entry) return;
  std::uint64_t now = calls::now_ns();
  if (state == CommState::kReady) {
    creation.entry->ready_ns = now;
  } else {
    creation.entry->end_ns = now;
  }
  creation.entry->state.store(state, std::memory_order_release);
}

// The real call, or the group that it was part of, has returned.
void settle(const flight::Writer& writer, const Creation& creation, Result result) {
  if (!calls::accepted(result)) return without_communicator(creation, CommState::kFailed);
  if (!creation.id) return without_communicator(creation, CommState::kReady);
  Comm comm = *creation.where;  // NCCL has just written there, or will: the host keeps it
  if (comm) return handle_known(writer, creation, comm, result == Result::kSuccess);
  if (result == Result::kInProgress) return wait_for_handle(creation, Waiting::kBackground, 0);
  without_communicator(creation, CommState::kReady);  // NCCL says that this rank is no member
}

// A communicator created in the background whose handle has come by now.  The host may have moved or freed the place
// where it asked for it, hence the checked read.
bool take_from_background(const flight::Writer& writer, Comm comm) {
  rank::CheckedMemory memory;
  for (Waiting& slot : waiting) {
    std::uint32_t state = Waiting::kBackground;
    if (slot.state.load(std::memory_order_acquire) != state) continue;
    Comm found = nullptr;
    auto where = reinterpret_cast<std::uintptr_t>(slot.creation.where);
    if (!memory.read(where, &found, sizeof(void*)) || found != comm) continue;
    if (!slot.state.compare_exchange_strong(state, Waiting::kClaimed, std::memory_order_acquire)) continue;
    handle_known(writer, slot.creation, comm, true);
    slot.state.store(Waiting::kFree, std::memory_order_release);
    return true;
  }
  return false;
}

Live* adopt_unknown(const flight::Writer& writer, Comm comm, resolve::LibraryId library) {
  Plan plan;
  plan.id = unknown_id(process_hash(writer), reinterpret_cast<std::uint64_t>(comm),
                       unknown_so_far.fetch_add(1, std::memory_order_relaxed));
  plan.where = &comm;
  handle_known(writer, begin_creation(writer, plan, library), comm, true);
  return find(comm);
}

}  // namespace

std::uint64_t process_hash(const flight::Writer& writer) {
  const flight::Header& header = writer.header();
  std::uint64_t hash = flight::fnv1a(header.host, strnlen(header.host, sizeof header.host));
  hash = flight::mix(hash, static_cast<std::uint64_t>(header.pid));
  hash = flight::mix(hash, header.pid_namespace);
  return flight::mix(hash, header.pid_start_ticks);
}

std::uint32_t earlier_with(const flight::Writer& writer, std::uint64_t id, std::int32_t rank) {
  std::uint32_t count = writer.header().comm_count.load(std::memory_order_acquire), earlier = 0;
  for (std::uint32_t i = 0; i < count && i < flight::kCommEntries; ++i) {
    const flight::CommEntry& entry = writer.comm(i);
    if (entry.state.load(std::memory_order_acquire) == CommState::kFailed) continue;
    earlier += entry.id == id && entry.rank == rank;
  }
  return earlier;
}

Creation begin_creation(const flight::Writer& writer, const Plan& plan, resolve::LibraryId library) {
  Creation creation;
  creation.library = library;
  creation.id = plan.id;
  creation.where = plan.where;
  flight::CommEntry* entry = creation.entry = writer.open_comm(&creation.index);
  if (!entry) return creation;
  entry->origin = plan.origin;
  entry->id = plan.id;
  entry->nccl_hash = plan.nccl_hash;
  entry->parent = plan.parent;
  entry->rank = plan.rank;
  entry->size = plan.size;
  entry->color = plan.color;
  entry->ordinal = plan.ordinal;
  entry->device = static_cast<std::uint32_t>(plan.device >= 0 ? plan.device : runtime::current_device());
  entry->site = rank::call_site(writer);
  std::uint64_t total;
  entry->state.store(CommState::kCreating, std::memory_order_release);
  if (!runtime::device_memory(&entry->free_before, &total)) entry->free_before = flight::kUnknownBytes;
  if (creation.index == 0) record_versions(writer, library);
  return creation;
}

void finish_creation(const flight::Writer& writer, const Creation& creation, Result result, calls::Group& group) {
  if (group.depth && calls::accepted(result)) {
    ++group.creations;
    return wait_for_handle(creation, Waiting::kInGroup, group.ordinal);
  }
  settle(writer, creation, result);
}

void settle_group(const flight::Writer& writer, const calls::Group& group, Result result) {
  for (Waiting& slot : waiting) {
    std::uint32_t state = Waiting::kInGroup;
    if (slot.state.load(std::memory_order_acquire) != state || slot.group != group.ordinal) continue;
    if (!slot.state.compare_exchange_strong(state, Waiting::kClaimed, std::memory_order_acquire)) continue;
    Creation creation = slot.creation;
    slot.state.store(Waiting::kFree, std::memory_order_release);
    settle(writer, creation, result);
  }
}

Known known(const flight::Writer& writer, Live* live, Comm comm, resolve::LibraryId library_of_caller) {
  if (!live) [[unlikely]] {
    if (!comm) return {calls::kNoComm, 0};
    live = take_from_background(writer, comm) ? find(comm) : adopt_unknown(writer, comm, library_of_caller);
    if (!live) return {calls::kNoComm, 0};
  }
  if (!live->ready.load(std::memory_order_relaxed)) [[unlikely]] {
    // Its first use: the host knows that it is ready.
    if (!live->ready.exchange(true) && live->index != calls::kNoComm) {
      become_ready(writer, &writer.comm(live->index), live->library, comm);
    }
  }
  return {live->index, live->id};
}

void note_async_error(const flight::Writer& writer, Comm comm, Result error) {
  if (error == Result::kInProgress) return;
  Live* live = find(comm);
  if (!live && error == Result::kSuccess && take_from_background(writer, comm)) return;
  if (!live || live->index == calls::kNoComm) return;
  flight::CommEntry& entry = writer.comm(live->index);
  if (error != Result::kSuccess) {
    std::uint64_t none = 0;
    writer.header().async_error.compare_exchange_strong(
        none, std::uint64_t{live->index} << 32 | static_cast<std::uint32_t>(error), std::memory_order_relaxed);
    if (!live->ready.load(std::memory_order_relaxed)) entry.state.store(CommState::kFailed, std::memory_order_release);
    return;
  }
  if (!live->ready.load(std::memory_order_relaxed) && !live->ready.exchange(true)) {
    become_ready(writer, &entry, live->library, comm);
  }
}

const runtime::Failure* failure_of(Comm comm) {
  const runtime::Failure* failure = runtime::failure();
  if (!failure) return nullptr;
  Live* live = find(comm);
  return live && live->index < failure->comms ? failure : nullptr;
}

void note_end(const flight::Writer& writer, Comm comm, CommState state) {
  Live* live = find(comm);
  if (!live) return;
  if (live->index != calls::kNoComm) {
    flight::CommEntry& entry = writer.comm(live->index);
    if (state != CommState::kFinalized) entry.end_ns = calls::now_ns();
    entry.state.store(state, std::memory_order_release);
  }
  if (state != CommState::kFinalized) remove(comm);
}

void forget_communicators() {
  forget_all();
  for (Waiting& slot : waiting) slot.state.store(Waiting::kFree, std::memory_order_relaxed);
}

}  // namespace dshang::interpose::comms
