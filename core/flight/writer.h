// Writes flight memory.  Freestanding: no allocation, no lock, no libstdc++ object code, no exception.
//
// Threads: every function may be called by any thread at any time unless it says otherwise.  A record is opened,
// filled and completed by one thread; another thread may open the next one meanwhile.
// Failure: a full table gives id 0 and counts what was dropped; rings overwrite their oldest record.
#pragma once

#include "core/flight/format.h"

namespace dshang::flight {

// What is known of the process when it wakes.
struct Identity {
  std::int32_t rank = -1, local_rank = -1, world_size = 0, restart_count = 0;
  std::uint64_t job = 0, net_namespace = 0, pid_namespace = 0;
  std::uint64_t start_ns = 0, start_real_ns = 0;
};

// A record of a ring that is being written.  `complete()` makes it visible to readers.
template <typename Record>
class Open {
 public:
  Open(Record* record, std::uint64_t n) : record_(record), n_(n) {}
  Record* operator->() const { return record_; }
  Record& operator*() const { return *record_; }
  std::uint64_t n() const { return n_; }
  void complete() const { record_->stamp.store(complete_stamp(n_), std::memory_order_release); }

 private:
  Record* record_;
  std::uint64_t n_;
};

class Writer {
 public:
  // Bytes that a flight memory needs.
  static std::size_t total_bytes();

  // Lays out zeroed memory of total_bytes() and takes it over.  `ops`: what CallRecord::op indexes.
  // The process fields (pid, start ticks, host) are filled here.
  static Writer format(void* memory, const Identity& identity, const OpInfo* ops, std::uint32_t op_count);

  Writer() = default;
  explicit Writer(void* memory);  // memory that format() laid out

  explicit operator bool() const { return base_ != nullptr; }
  Header& header() const { return *reinterpret_cast<Header*>(base_); }

  // Id of a string (index + 1); equal strings have equal ids.  At most 4096 bytes are kept.  0 = no room, or empty.
  std::uint32_t string(const char* text, std::size_t length) const;
  std::uint32_t string(const char* text) const;

  // Claims the site of `key` (not 0).  Returns its id; `*is_new` tells that the caller has to fill the frames and then
  // call resolve_site().  0 = no room.
  std::uint32_t site(std::uint64_t key, bool* is_new) const;
  SiteEntry& site_entry(std::uint32_t id) const;
  void resolve_site(std::uint32_t id, std::uint32_t frames) const;

  Open<CallRecord> open_call() const;
  Open<VisitRecord> open_visit() const;
  Open<MemoryStep> open_memory_step() const;
  Open<AllocFailure> open_alloc_failure() const;
  Open<ExceptionRecord> open_exception() const;
  Open<StackRecord> open_stack() const;

  // The call of record n if its slot still holds it, else null.
  CallRecord* call(std::uint64_t n) const;

  // A communicator's entry, for the caller to fill; null = table full.  Readers see it once its state is stored
  // with release, which comes last.  `*index` is what CallRecord::comm holds.
  CommEntry* open_comm(std::uint32_t* index) const;
  CommEntry& comm(std::uint32_t index) const;

  // The calling thread's entry; the index is stable for the thread's life.  kThreadEntries = no room.
  std::uint32_t thread(std::uint32_t tid) const;
  ThreadEntry& thread_entry(std::uint32_t index) const;

  void fact(const char* key, const char* value) const;
  void fact(std::uint32_t key, std::uint32_t value) const;

  // Records the first ending only; async-signal-safe.
  void ending(EndingKind kind, std::int32_t code) const;

 private:
  template <typename T>
  T* section(Section which) const;
  template <typename T>
  Open<T> open(Section which, std::atomic<std::uint64_t>& head, std::uint32_t entries) const;

  unsigned char* base_ = nullptr;
};

}  // namespace dshang::flight
