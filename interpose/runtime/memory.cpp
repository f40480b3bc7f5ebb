#include "interpose/runtime/memory.h"

#include <initializer_list>

#include "core/rank/allocator_peaks.h"
#include "core/rank/base_libc.h"
#include "core/rank/context.h"
#include "core/rank/pyframes.h"
#include "interpose/runtime/api.h"
#include "interpose/runtime/ledger.h"

namespace dshang::interpose::memory {
namespace {

using flight::kMemoryKinds;
using flight::MemoryKind;
using flight::MemoryLive;

constexpr int kOutOfMemory =
    2;  // cudaErrorMemoryAllocation and CUDA_ERROR_OUT_OF_MEMORY (driver_types.h, cuda.h)

// Handles, mappings and pointers may have equal values; user addresses end below 2^57.
constexpr std::uint64_t kHandleTag = std::uint64_t{1} << 63, kMappingTag = std::uint64_t{1} << 62;

Ledger ledger;
MemoryLive asleep;
std::atomic<MemoryLive*> target{&asleep};
std::atomic<std::uint8_t> epoch{0};

// Counts when the last record was written; `closing` is held while one is.
struct Totals {
  std::uint64_t allocations, frees, failures, retries;
};
Totals at_last_record;
std::atomic<bool> closing{false};

// Since the last record.
std::atomic<std::uint64_t> call_ns{0}, retry_ns{0};

// A request that failed on this thread and may be tried again.
struct Refused {
  MemoryKind kind;
  std::uint8_t records;  // of record[], the newest failures of this request
  bool freed;            // something was given back since
  std::uint64_t bytes;   // 0 = none
  struct {
    flight::AllocFailure* slot;
    std::uint64_t stamp;
  } record[4];
};
thread_local constinit Refused refused{};

// The calls from a refused request on, as long as they may be the allocator's way to the same request: how long it
// takes.  An allocator calls again within kRetryGap; longer, and the program did something else.
struct Retry {
  bool goes_on, succeeds;
  std::uint64_t since_ns, until_ns, inside_ns;  // 0 = no call of it has ended
};
thread_local constinit Retry retry{};
constexpr std::uint64_t kRetryGap = 1'000'000'000;

unsigned at(MemoryKind kind) { return static_cast<unsigned>(kind); }

std::uint64_t address_key(const void* address) { return reinterpret_cast<std::uint64_t>(address); }

void count(std::atomic<std::uint64_t>& counter) { counter.fetch_add(1, std::memory_order_relaxed); }

// While counters move from static memory a sum may be below zero for a moment; such a value is no peak.
constexpr std::uint64_t kImplausible = std::uint64_t{1} << 60;

bool raise_peak(std::atomic<std::uint64_t>& peak, std::uint64_t bytes) {
  std::uint64_t before = peak.load(std::memory_order_relaxed);
  while (bytes > before && bytes < kImplausible) {
    if (peak.compare_exchange_weak(before, bytes, std::memory_order_relaxed)) return true;
  }
  return false;
}

constexpr MemoryKind kOfDevice[] = {MemoryKind::kDevice, MemoryKind::kManaged, MemoryKind::kPool,
                                    MemoryKind::kVirtual};

// MemoryChange: how many have begun, how many have ended.
std::atomic<std::uint64_t> changes_begun{0}, changes_ended{0};

// Where device memory grew last in the step, and what the poller saw of the device: its size, and what of it neither was
// free nor taken by calls of this process at that moment.
std::atomic<std::uint32_t> peak_phase{0}, peak_module{0};
std::atomic<std::uint64_t> seen_other{flight::kUnknownBytes}, seen_total{flight::kUnknownBytes};

std::uint64_t taken_of_device(const MemoryLive& live) {
  std::uint64_t bytes = 0;
  for (MemoryKind kind : kOfDevice) bytes += live.bytes[at(kind)].load(std::memory_order_relaxed);
  return bytes;
}

std::uint64_t taken_of_device(const flight::MemoryStep& record) {
  std::uint64_t bytes = 0;
  for (MemoryKind kind : kOfDevice) bytes += record.live[at(kind)];
  return bytes;
}

// Free bytes where `taken` are taken: the process has taken and given back since the poller looked.
std::uint64_t free_with(std::uint64_t taken) {
  std::uint64_t total = seen_total.load(std::memory_order_relaxed),
                other = seen_other.load(std::memory_order_relaxed);
  if (total == flight::kUnknownBytes || other == flight::kUnknownBytes) return flight::kUnknownBytes;
  return total > other + taken ? total - other - taken : 0;
}

void note_where(MemoryKind kind) {
  if (kind == MemoryKind::kHost || kind == MemoryKind::kRegistered) return;
  const flight::Writer* writer = runtime::recorder();
  if (!writer) return;
  rank::Purpose purpose = rank::look_purpose(*writer);
  peak_phase.store(purpose.phase, std::memory_order_relaxed);
  peak_module.store(purpose.module, std::memory_order_relaxed);
}

void add_bytes(MemoryKind kind, std::uint64_t bytes) {
  MemoryLive& live = *target.load(std::memory_order_acquire);
  std::uint64_t sum = live.bytes[at(kind)].fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (raise_peak(live.peak[at(kind)], sum)) note_where(kind);
}

void drop_bytes(const Allocation& allocation) {
  if (allocation.epoch != epoch.load(std::memory_order_relaxed)) return;
  target.load(std::memory_order_acquire)
      ->bytes[at(allocation.kind)]
      .fetch_sub(allocation.bytes, std::memory_order_relaxed);
}

// Enters it into ledger and sums; false = no room.
bool enter(std::uint64_t key, Allocation allocation) {
  allocation.epoch = epoch.load(std::memory_order_relaxed);
  bool replaced;
  Allocation old;
  if (!ledger.put(key, allocation, &replaced, &old)) {
    count(target.load(std::memory_order_acquire)->untracked);
    return false;
  }
  if (replaced) drop_bytes(old);
  add_bytes(allocation.kind, allocation.bytes);
  return true;
}

// The allocator's retry: it failed, gave segments back, and the same request succeeds.
void close_refusal(MemoryKind kind, std::uint64_t bytes) {
  if (refused.bytes != bytes || refused.kind != kind) {
    retry = {};
    return;
  }
  retry.succeeds = retry.goes_on && refused.freed;
  if (refused.freed) {
    count(target.load(std::memory_order_acquire)->retries);
    for (unsigned i = 0; i < refused.records; ++i) {
      auto& [slot, stamp] = refused.record[i];
      if (slot->stamp.load(std::memory_order_acquire) != stamp) continue;  // overwritten
      __atomic_store_n(&slot->retried, std::uint8_t{1}, __ATOMIC_RELAXED);
    }
  }
  refused.bytes = 0;
}

void remember_refusal(MemoryKind kind, std::uint64_t bytes) {
  bool is_other = refused.bytes != bytes || refused.kind != kind;
  if (is_other) refused = {kind, 0, false, bytes, {}};
  if (is_other || !retry.goes_on) retry = {true, false, 0, 0, 0};
}

void remember_record(const flight::Open<flight::AllocFailure>& record) {
  constexpr unsigned kKept = sizeof refused.record / sizeof refused.record[0];
  if (refused.records == kKept) return;
  refused.record[refused.records++] = {&*record, flight::complete_stamp(record.n())};
}

void move_counter(std::atomic<std::uint64_t>& from, std::atomic<std::uint64_t>& to) {
  std::uint64_t value = from.exchange(0, std::memory_order_relaxed);
  if (value) to.fetch_add(value, std::memory_order_relaxed);
}

void move_counters(MemoryLive& to) {
  for (unsigned kind = 0; kind < kMemoryKinds; ++kind) {
    move_counter(asleep.bytes[kind], to.bytes[kind]);
    raise_peak(to.peak[kind], asleep.peak[kind].exchange(0, std::memory_order_relaxed));
    raise_peak(to.peak[kind], to.bytes[kind].load(std::memory_order_relaxed));
  }
  move_counter(asleep.allocations, to.allocations);
  move_counter(asleep.frees, to.frees);
  move_counter(asleep.failures, to.failures);
  move_counter(asleep.retries, to.retries);
  move_counter(asleep.untracked, to.untracked);
}

// The handle and every mapping hold one reference each.
void drop_handle(std::uint64_t handle) {
  Allocation allocation;
  if (ledger.drop_reference(handle | kHandleTag) == 1 && ledger.take(handle | kHandleTag, &allocation)) {
    drop_bytes(allocation);
    count(target.load(std::memory_order_acquire)->frees);
    refused.freed = true;
  }
}

void write_record(const flight::Writer& writer) {
  settle();
  MemoryLive& live = writer.header().memory;
  auto record = writer.open_memory_step();
  record->time_ns = rank::now_ns();
  record->step = writer.header().step.load(std::memory_order_relaxed);
  for (unsigned kind = 0; kind < kMemoryKinds; ++kind) {
    record->live[kind] = live.bytes[kind].load(std::memory_order_relaxed);
    record->peak[kind] = live.peak[kind].exchange(record->live[kind], std::memory_order_relaxed);
  }
  Totals now{live.allocations.load(std::memory_order_relaxed), live.frees.load(std::memory_order_relaxed),
             live.failures.load(std::memory_order_relaxed), live.retries.load(std::memory_order_relaxed)};
  record->allocations = now.allocations - at_last_record.allocations;
  record->frees = now.frees - at_last_record.frees;
  record->failures = now.failures - at_last_record.failures;
  record->retries = now.retries - at_last_record.retries;
  at_last_record = now;
  record->reserved_peak = rank::take_reserved_peak();
  record->allocated_peak = rank::take_allocated_peak();
  record->device_free = free_with(taken_of_device(*record));  // threads go on: of the very bytes in this record
  record->device_total = seen_total.load(std::memory_order_relaxed);
  record->peak_phase = peak_phase.exchange(0, std::memory_order_relaxed);
  record->peak_module = peak_module.exchange(0, std::memory_order_relaxed);
  rank::take_batch(record->batch);
  rank::take_phase_peaks(record->phases);
  record->call_ns = call_ns.exchange(0, std::memory_order_relaxed);
  record->retry_ns = retry_ns.exchange(0, std::memory_order_relaxed);
  record.complete();
}

}  // namespace

void wake(const flight::Writer& writer) {
  MemoryLive& live = writer.header().memory;
  move_counters(live);
  at_last_record = {};
  closing.store(false);
  target.store(&live, std::memory_order_release);
}

void settle() {
  if (MemoryLive* live = target.load(std::memory_order_acquire); live != &asleep) move_counters(*live);
}

void fall_asleep() {
  for (unsigned kind = 0; kind < kMemoryKinds; ++kind) {
    asleep.bytes[kind].store(0, std::memory_order_relaxed);
    asleep.peak[kind].store(0, std::memory_order_relaxed);
  }
  for (auto* counter :
       {&asleep.allocations, &asleep.frees, &asleep.failures, &asleep.retries, &asleep.untracked}) {
    counter->store(0, std::memory_order_relaxed);
  }
  target.store(&asleep, std::memory_order_release);
  epoch.fetch_add(1, std::memory_order_relaxed);
  refused = {};
  retry = {};
  call_ns.store(0, std::memory_order_relaxed);
  retry_ns.store(0, std::memory_order_relaxed);
  peak_phase.store(0, std::memory_order_relaxed);
  peak_module.store(0, std::memory_order_relaxed);
  seen_other.store(flight::kUnknownBytes, std::memory_order_relaxed);
  seen_total.store(flight::kUnknownBytes, std::memory_order_relaxed);
  changes_begun.store(0, std::memory_order_relaxed);  // of threads that the child does not have
  changes_ended.store(0, std::memory_order_relaxed);
  rank::forget_allocator();
}

bool look_at_device() {
  std::uint64_t free_bytes, total_bytes, ended = changes_ended.load(), begun = changes_begun.load();
  if (begun != ended) return false;
  if (!runtime::device_memory(&free_bytes, &total_bytes)) return true;  // asked in vain
  std::uint64_t known = free_bytes + taken_of_device(*target.load(std::memory_order_acquire));
  std::atomic_thread_fence(std::memory_order_acquire);
  if (changes_begun.load() != begun) return true;
  seen_other.store(total_bytes > known ? total_bytes - known : 0, std::memory_order_relaxed);
  seen_total.store(total_bytes, std::memory_order_relaxed);
  return true;
}

void memory_step(std::int64_t) {
  // The helper may be closing a period without step: then there is hardly anything to add to it.
  if (const flight::Writer* writer = runtime::recorder(); writer && !closing.exchange(true)) {
    write_record(*writer);
    closing.store(false);
  }
}

void memory_period() {
  const flight::Writer* writer = runtime::recorder();
  if (!writer || writer->header().step.load(std::memory_order_relaxed) != flight::kNoStep || closing.exchange(true)) {
    return;
  }
  const MemoryLive& live = writer->header().memory;
  bool anything = live.allocations.load(std::memory_order_relaxed) != at_last_record.allocations ||
                  live.frees.load(std::memory_order_relaxed) != at_last_record.frees ||
                  live.failures.load(std::memory_order_relaxed) != at_last_record.failures;
  if (anything) write_record(*writer);
  closing.store(false);
}

void physical_created(std::uint64_t handle, std::uint64_t bytes, bool on_device) {
  MemoryKind kind = on_device ? MemoryKind::kVirtual : MemoryKind::kHost;
  count(target.load(std::memory_order_acquire)->allocations);
  enter(handle | kHandleTag, {bytes, kind, 0, 0});
  close_refusal(kind, bytes);
}

void physical_mapped(std::uint64_t address, std::uint64_t bytes, std::uint64_t handle) {
  if (!ledger.add_reference(handle | kHandleTag)) return;
  bool replaced;
  Allocation old;
  Allocation mapping{bytes, MemoryKind::kVirtual, epoch.load(std::memory_order_relaxed), handle};
  if (!ledger.put(address | kMappingTag, mapping, &replaced, &old)) {
    drop_handle(handle);
    return;
  }
  if (replaced) drop_handle(old.extra);
}

void physical_released(std::uint64_t handle) { drop_handle(handle); }

void range_unmapped(std::uint64_t address, std::uint64_t bytes) {
  // One call may cover several mappings that lie side by side.
  std::uint64_t end = address + bytes;
  Allocation mapping;
  while (address < end && ledger.take(address | kMappingTag, &mapping) && mapping.bytes) {
    drop_handle(mapping.extra);
    address += mapping.bytes;
  }
}

}  // namespace dshang::interpose::memory

namespace dshang::interpose::runtime {

using namespace memory;

void MemoryChange::begins() { changes_begun.fetch_add(1); }
void MemoryChange::ends() { changes_ended.fetch_add(1); }

void allocated(flight::MemoryKind kind, const void* address, std::size_t bytes) {
  if (!address) return;  // zero bytes asked for
  count(target.load(std::memory_order_acquire)->allocations);
  enter(address_key(address), {bytes, kind, 0, 0});
  if (refused.bytes) close_refusal(kind, bytes);
}

Freed freed(flight::MemoryKind, const void* address) {
  if (!address) return {};
  count(target.load(std::memory_order_acquire)->frees);
  refused.freed = true;
  Allocation allocation;
  if (!ledger.take(address_key(address), &allocation)) return {};
  drop_bytes(allocation);
  return {allocation.kind, allocation.bytes};
}

void restored(const Freed& freed, const void* address) {
  if (!address) return;
  target.load(std::memory_order_acquire)->frees.fetch_sub(1, std::memory_order_relaxed);
  if (freed.bytes) enter(address_key(address), {freed.bytes, freed.kind, 0, 0});
}

void memory_call(std::uint64_t begin_ns, std::uint64_t end_ns) {
  std::uint64_t spent = end_ns - begin_ns;
  call_ns.fetch_add(spent, std::memory_order_relaxed);
  if (!retry.goes_on) return;
  if (retry.until_ns == 0 || begin_ns - retry.until_ns > kRetryGap) retry.since_ns = begin_ns, retry.inside_ns = 0;
  retry.until_ns = end_ns;
  retry.inside_ns += spent;
  if (!retry.succeeds) return;
  std::uint64_t whole = end_ns - retry.since_ns;
  retry_ns.fetch_add(whole, std::memory_order_relaxed);
  call_ns.fetch_add(whole - retry.inside_ns, std::memory_order_relaxed);
  retry = {};
}

void allocation_failed(flight::MemoryKind kind, std::size_t bytes, int result) {
  // Anything else is a mistake in the call, an older error of the context, or a feature that is not there.
  if (result != kOutOfMemory) return;
  count(target.load(std::memory_order_acquire)->failures);
  remember_refusal(kind, bytes);
  const flight::Writer* writer = recorder();
  if (!writer) return;
  std::uint64_t free_bytes = flight::kUnknownBytes, total = flight::kUnknownBytes;
  device_memory(&free_bytes, &total);
  rank::Purpose purpose = rank::look_purpose(*writer);
  std::uint32_t site = rank::call_site(*writer);
  auto record = writer->open_alloc_failure();
  record->time_ns = rank::now_ns();
  record->size = bytes;
  record->free = free_bytes;
  record->total = total;
  const MemoryLive& live = writer->header().memory;
  auto live_of = [&](MemoryKind one) { return live.bytes[at(one)].load(std::memory_order_relaxed); };
  record->live_device = live_of(MemoryKind::kDevice);
  record->live_other =
      live_of(MemoryKind::kManaged) + live_of(MemoryKind::kPool) + live_of(MemoryKind::kVirtual);
  record->allocator_reserved = rank::allocator_reserved_now.load(std::memory_order_relaxed);
  record->allocator_allocated = rank::allocator_allocated_now.load(std::memory_order_relaxed);
  rank::look_at_batch(record->batch);
  record->step = purpose.step;
  record->phase = purpose.phase;
  record->module = purpose.module;
  record->site = site;
  record->thread = writer->thread(rank::kernel_thread_id());
  record->result = result;
  record->kind = kind;
  record.complete();
  remember_record(record);
}

}  // namespace dshang::interpose::runtime
