// What one rank process recorded, decoded: the plain form of a flight memory (core/flight/format.h), with
// names interned job-wide.  Filled by load.h (from flight memory, live or from a file) and by parse.h (from
// the readable text that `dshang report --dump` prints); nothing else in the program looks at raw flight
// memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/flight/format.h"
#include "core/job/names.h"

namespace dshang::job {

inline constexpr std::int64_t kNoStep = flight::kNoStep;

// The newest records of a ring.  `first()` is the number of the oldest record that is still there.
template <typename T>
class Window {
 public:
  std::uint64_t first() const { return first_; }
  std::uint64_t end() const { return first_ + items_.size() - skipped_; }  // number of the next record
  bool empty() const { return end() == first_; }
  std::uint64_t size() const { return end() - first_; }
  T& at(std::uint64_t n) { return items_[skipped_ + (n - first_)]; }
  const T& at(std::uint64_t n) const { return items_[skipped_ + (n - first_)]; }
  bool has(std::uint64_t n) const { return n >= first_ && n < end(); }
  const T* begin_ptr() const { return items_.data() + skipped_; }
  void push(T item) { items_.push_back(std::move(item)); }
  // Forgets everything before record n (a ring overwrote it).
  void drop_before(std::uint64_t n) {
    if (n <= first_) return;
    if (n >= end()) {
      items_.clear();
      skipped_ = 0;
      first_ = n;
      return;
    }
    skipped_ += n - first_;
    first_ = n;
    if (skipped_ > items_.size() / 2) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(skipped_));
      skipped_ = 0;
    }
  }

 private:
  std::vector<T> items_;
  std::uint64_t first_ = 0;
  std::uint64_t skipped_ = 0;
};

struct Call {
  std::uint64_t number = 0;  // as in flight::CallRecord
  std::uint64_t count = 0;
  std::uint64_t stream = 0;
  std::uint64_t enter_ns = 0, return_ns = 0, started_ns = 0, done_ns = 0;
  std::uint64_t visits_before = 0;
  std::uint64_t params = 0;
  std::int64_t step = kNoStep;
  std::uint32_t comm = 0;  // index into RankRecords::comms
  std::uint32_t group = 0;
  std::uint32_t thread = 0;
  SiteId site = 0;
  NameId module = 0, phase = 0;
  std::int32_t root_or_peer = -1;
  std::uint8_t op = 0;  // index into RankRecords::ops
  flight::DType dtype = flight::DType::kNone;
  flight::ReduceOp reduce_op = flight::ReduceOp::kNone;
  std::uint32_t flags = 0;  // flight::CallFlags
  std::uint32_t result = 0;
  bool torn = false;  // overwritten while it was read: only its number in the ring is known
};

struct Visit {
  flight::VisitKind kind = flight::VisitKind::kNone;
  std::uint8_t training = 2;
  std::uint16_t thread = 0;
  std::uint32_t micro = 0;
  std::uint64_t time_ns = 0;
  std::uint64_t calls_before = 0;
  std::uint64_t params = 0;
  std::int64_t step = kNoStep;
  NameId module = 0, phase = 0, detail = 0;
  SiteId site = 0;
  bool torn = false;
};

struct Comm {
  flight::CommState state = flight::CommState::kNone;
  flight::CommOrigin origin = flight::CommOrigin::kUnknown;
  std::uint64_t id = 0, nccl_hash = 0, handle = 0, parent = 0;
  std::int32_t rank = -1, size = 0, color = 0;
  std::uint32_t ordinal = 0, device = 0;
  SiteId site = 0;
  NameId label = 0;  // how reports call it, 0 = by its origin and size; not in flight memory
  std::uint64_t begin_ns = 0, ready_ns = 0, end_ns = 0;
  std::uint64_t free_before = flight::kUnknownBytes, free_after = flight::kUnknownBytes;
  std::uint64_t calls = 0;
};

struct MemoryPhase {
  NameId phase = 0;
  std::uint64_t allocated = 0;
};

struct MemoryStep {
  std::uint64_t time_ns = 0;
  std::int64_t step = kNoStep;
  std::uint64_t live[flight::kMemoryKinds] = {}, peak[flight::kMemoryKinds] = {};
  std::uint64_t allocations = 0, frees = 0, failures = 0, retries = 0;
  std::uint64_t reserved_peak = flight::kUnknownBytes, allocated_peak = flight::kUnknownBytes;
  std::uint64_t device_free = flight::kUnknownBytes, device_total = flight::kUnknownBytes;
  NameId peak_phase = 0, peak_module = 0;
  std::uint32_t batch[flight::kBatchSizes] = {};
  MemoryPhase phases[flight::kMemoryPhases];
  std::uint64_t call_ns = 0, retry_ns = 0;
};

struct AllocFailure {
  std::uint64_t time_ns = 0, size = 0, free = flight::kUnknownBytes, total = flight::kUnknownBytes,
                live_device = 0;
  std::int64_t step = kNoStep;
  NameId phase = 0, module = 0;
  SiteId site = 0;
  std::uint32_t thread = 0;
  std::int32_t result = 0;
  flight::MemoryKind kind = flight::MemoryKind::kDevice;
  bool retried = false;
  std::uint64_t live_other = 0;
  std::uint64_t allocator_reserved = flight::kUnknownBytes, allocator_allocated = flight::kUnknownBytes;
  std::uint32_t batch[flight::kBatchSizes] = {};
};

struct Thread {
  std::uint32_t tid = 0, flags = 0, group_depth = 0;
  NameId inside = 0;
  std::uint64_t inside_since_ns = 0, last_ns = 0;
};

struct Exception {
  std::uint64_t time_ns = 0;
  std::int64_t step = kNoStep;
  NameId type = 0, message = 0, phase = 0, module = 0;
  SiteId site = 0;
  std::uint32_t thread = 0;
};

struct Stack {
  std::uint64_t time_ns = 0;
  std::uint32_t tid = 0, request = 0;
  flight::StackSource source = flight::StackSource::kNone;
  SiteId site = 0;
};

struct FactRecord {
  std::uint64_t time_ns = 0;
  NameId key = 0, value = 0;
};

struct RankRecords {
  // Identity (flight::Header).
  std::int32_t pid = 0, rank = -1, local_rank = -1, world_size = 0, restart_count = 0;
  bool provisional = true;
  std::uint64_t pid_start_ticks = 0, job = 0, net_namespace = 0, pid_namespace = 0, start_ns = 0,
                start_real_ns = 0;
  std::string host;

  std::vector<flight::OpInfo> ops;
  Window<Call> calls;
  Window<Visit> visits;
  Window<MemoryStep> memory_steps;
  Window<AllocFailure> alloc_failures;
  Window<Exception> exceptions;
  Window<Stack> stacks;
  Window<FactRecord> facts;
  std::vector<Comm> comms;
  std::vector<Thread> threads;
  std::uint64_t live[flight::kMemoryKinds] = {}, peak[flight::kMemoryKinds] = {};
  std::uint64_t allocations = 0, frees = 0, failures = 0, retries = 0, untracked = 0;
  std::int64_t step = kNoStep;
  std::uint32_t world_rank = 0;
  std::uint32_t python = 0;
  std::uint64_t poll_ns = 0, poll_stuck_ns = 0, graph_launches = 0, async_error = 0;
  std::uint64_t dropped_strings = 0, dropped_sites = 0, dropped_comms = 0, dropped_threads = 0;
  flight::EndingKind ending = flight::EndingKind::kNone;
  std::int32_t ending_code = 0;
  std::uint64_t ending_ns = 0;
};

}  // namespace dshang::job
