// The process itself: identity, counters, operations, communicators, threads.
#include <algorithm>
#include <cctype>
#include <string>

#include "core/job/loader.h"
#include "core/job/printable.h"

namespace dshang::job {

using flight::Copy;

void Loader::identity() {
  set(records_.pid, header_.pid);
  set(records_.rank, header_.rank);
  set(records_.local_rank, header_.local_rank);
  set(records_.world_size, header_.world_size);
  set(records_.restart_count, header_.restart_count);
  set(records_.provisional, header_.provisional != 0);
  set(records_.pid_start_ticks, header_.pid_start_ticks);
  set(records_.job, header_.job);
  set(records_.net_namespace, header_.net_namespace);
  set(records_.pid_namespace, header_.pid_namespace);
  set(records_.start_ns, header_.start_ns);
  set(records_.start_real_ns, header_.start_real_ns);
  if (records_.host.empty()) {
    char host[sizeof(flight::Header::host) + 1];
    reader_.host(host);
    set(records_.host, printable(host));
  }
}

void Loader::counters() {
  constexpr auto relaxed = std::memory_order_relaxed;
  for (unsigned kind = 0; kind < flight::kMemoryKinds; ++kind) {
    set(records_.live[kind], header_.memory.bytes[kind].load(relaxed));
    set(records_.peak[kind], header_.memory.peak[kind].load(relaxed));
  }
  set(records_.allocations, header_.memory.allocations.load(relaxed));
  set(records_.frees, header_.memory.frees.load(relaxed));
  set(records_.failures, header_.memory.failures.load(relaxed));
  set(records_.retries, header_.memory.retries.load(relaxed));
  set(records_.untracked, header_.memory.untracked.load(relaxed));
  set(records_.step, header_.step.load(relaxed));
  set(records_.world_rank, header_.world_rank.load(relaxed));
  set(records_.python, std::min(header_.python.load(relaxed), 2u));
  records_.poll_ns = header_.poll_ns.load(relaxed);
  set(records_.poll_stuck_ns, header_.poll_stuck_ns.load(relaxed));
  set(records_.graph_launches, header_.graph_launches.load(relaxed));
  set(records_.async_error, header_.async_error.load(relaxed));
  set(records_.dropped_strings, header_.dropped_strings.load(relaxed));
  set(records_.dropped_sites, header_.dropped_sites.load(relaxed));
  set(records_.dropped_comms, header_.dropped_comms.load(relaxed));
  set(records_.dropped_threads, header_.dropped_threads.load(relaxed));
  flight::EndingKind kind = header_.ending.kind.load(std::memory_order_acquire);
  set(records_.ending, known(kind, flight::EndingKind::kAbort, flight::EndingKind::kNone));
  if (records_.ending == flight::EndingKind::kNone) return;
  set(records_.ending_code, header_.ending.code);
  set(records_.ending_ns, header_.ending.time_ns);
}

void Loader::ops() {
  if (!records_.ops.empty()) return;
  std::size_t used = 0;
  for (std::uint32_t i = 0; i < reader_.op_count() && i <= UINT8_MAX; ++i) {
    Copy<flight::OpInfo> entry;
    reader_.op(i, &entry);
    flight::OpInfo op{};
    op.traits = entry->traits;
    for (std::size_t c = 0; c + 1 < sizeof op.name && entry->name[c]; ++c) {
      unsigned char letter = static_cast<unsigned char>(entry->name[c]);
      op.name[c] = letter < 0x80 && (std::isalnum(letter) || letter == '_') ? static_cast<char>(letter) : '_';
    }
    records_.ops.push_back(op);
    if (op.name[0]) used = records_.ops.size();
  }
  records_.ops.resize(used);
  changed_ = true;
}

void Loader::comms() {
  std::uint32_t count = reader_.comm_count();
  if (count < records_.comms.size()) count = static_cast<std::uint32_t>(records_.comms.size());
  if (count != records_.comms.size()) records_.comms.resize(count), changed_ = true;
  for (std::uint32_t i = 0; i < count; ++i) {
    Copy<flight::CommEntry> entry;
    if (!reader_.comm(i, &entry)) continue;
    Comm& comm = records_.comms[i];
    bool missing = false;
    set(comm.state, known(entry->state.load(std::memory_order_relaxed), flight::CommState::kFailed,
                          flight::CommState::kNone));
    set(comm.origin, known(entry->origin, flight::CommOrigin::kGrow, flight::CommOrigin::kUnknown));
    set(comm.id, entry->id), set(comm.nccl_hash, entry->nccl_hash), set(comm.handle, entry->handle);
    set(comm.parent, entry->parent), set(comm.rank, entry->rank), set(comm.size, entry->size);
    set(comm.color, entry->color), set(comm.ordinal, entry->ordinal), set(comm.device, entry->device);
    set(comm.begin_ns, entry->begin_ns), set(comm.ready_ns, entry->ready_ns), set(comm.end_ns, entry->end_ns);
    set(comm.free_before, entry->free_before), set(comm.free_after, entry->free_after);
    set(comm.calls, entry->calls.load(std::memory_order_relaxed));
    set(comm.site, ids_.site(entry->site, &missing));
  }
}

void Loader::threads() {
  for (std::uint32_t i = 0; i < reader_.thread_count(); ++i) {
    Copy<flight::ThreadEntry> entry;
    reader_.thread(i, &entry);
    constexpr auto relaxed = std::memory_order_relaxed;
    std::uint32_t tid = entry->tid.load(relaxed);
    if (tid == 0 && i >= records_.threads.size()) return;  // entries are given out in order
    if (i >= records_.threads.size()) records_.threads.emplace_back(), changed_ = true;
    Thread& thread = records_.threads[i];
    bool missing = false;
    set(thread.tid, tid);
    set(thread.flags, entry->flags.load(relaxed));
    set(thread.group_depth, entry->group_depth.load(relaxed));
    set(thread.inside, ids_.name(entry->inside.load(relaxed), &missing));
    set(thread.inside_since_ns, entry->inside_since_ns.load(relaxed));
    set(thread.last_ns, entry->last_ns.load(relaxed));
  }
}

}  // namespace dshang::job
