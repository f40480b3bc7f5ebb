// Reads flight memory: a live mapping that its process is still writing, or the bytes of a file.
//
// Trusts nothing: magic, version, sizes, section bounds and entry sizes are checked against the real size
// once, and the section table is copied, so that bytes which change afterwards cannot lead a read outside.
// Every index is checked. What a slot holds is still anything at all: indices, enumerators and ids in a
// record are the caller's to check.
//
// A record is copied word by word and its stamp read again; what changed meanwhile is said (SlotState), never
// returned as if it were whole.
//
// Threads: any number at a time.  Freestanding, like the writer.  The memory must stay mapped and must not
// shrink while the Reader lives (a rank's memory is sealed; read files into memory rather than mapping them).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/flight/format.h"

namespace dshang::flight {

enum class SlotState : std::uint8_t {
  kComplete,
  kUnfinished,  // claimed, its fields are not all there yet; a later read may find it complete
  kGone,        // overwritten, or not a record that this slot can hold
};

// A private copy of an entry.
template <typename T>
class Copy {
 public:
  const T& operator*() const { return *reinterpret_cast<const T*>(bytes_); }
  const T* operator->() const { return reinterpret_cast<const T*>(bytes_); }
  unsigned char* bytes() { return bytes_; }

 private:
  alignas(T) unsigned char bytes_[sizeof(T)] = {};
};

// The records that a ring holds: first() .. head-1.
struct Ring {
  std::uint64_t head = 0;  // claimed so far
  std::uint32_t entries = 0;
  std::uint64_t first() const { return head > entries ? head - entries : 0; }
};

// The fields of a call that change after it is complete.
struct CallProgress {
  std::uint64_t return_ns = 0, started_ns = 0, done_ns = 0;
  std::uint32_t flags = 0, result = 0;
};

inline constexpr std::size_t kLongestString = 4096;

class Reader {
 public:
  Reader() = default;
  // `memory` must be aligned to 8 bytes (a mapping, or memory from new).
  Reader(const void* memory, std::size_t bytes);

  explicit operator bool() const { return base_ != nullptr; }
  // Why the memory cannot be read, in words; null when it can.
  const char* problem() const { return problem_; }

  // Identity and counters.  Live: each access may see another value.  Its section table and `host` are
  // untrusted; use the functions below.
  const Header& header() const { return *reinterpret_cast<const Header*>(base_); }
  // The name of the host, always terminated.
  void host(char (&text)[sizeof(Header::host) + 1]) const;

  Ring calls() const;
  Ring visits() const;
  Ring memory_steps() const;
  Ring alloc_failures() const;
  Ring facts() const;
  Ring exceptions() const;
  Ring stacks() const;

  SlotState call(std::uint64_t n, Copy<CallRecord>* out) const;
  SlotState visit(std::uint64_t n, Copy<VisitRecord>* out) const;
  SlotState memory_step(std::uint64_t n, Copy<MemoryStep>* out) const;
  SlotState alloc_failure(std::uint64_t n, Copy<AllocFailure>* out) const;
  SlotState fact(std::uint64_t n, Copy<Fact>* out) const;
  SlotState exception(std::uint64_t n, Copy<ExceptionRecord>* out) const;
  SlotState stack(std::uint64_t n, Copy<StackRecord>* out) const;

  // Only what changes; flags are read before the times, so that a flag's time is there.
  SlotState call_progress(std::uint64_t n, CallProgress* out) const;

  std::uint32_t op_count() const { return entries(Section::kOps); }
  bool op(std::uint32_t index, Copy<OpInfo>* out) const;  // false = no such entry

  std::uint32_t comm_count() const;
  // False = no such entry, or it is being filled.  The fields are at least as new as the state.
  bool comm(std::uint32_t index, Copy<CommEntry>* out) const;

  std::uint32_t thread_count() const { return entries(Section::kThreads); }
  bool thread(std::uint32_t index, Copy<ThreadEntry>* out) const;

  // Ids run from 1 to string_ids() and site_ids(); any other id is kGone.
  std::uint32_t string_ids() const { return entries(Section::kStrings); }
  std::uint32_t site_ids() const { return entries(Section::kSites); }

  // Copies at most kLongestString bytes to `text`, not terminated.  kUnfinished: the bytes are not there
  // (yet; for ever where dropped_strings tells that the arena was full).  kGone: no such string, or its bytes
  // do not have its hash.
  SlotState string(std::uint32_t id, char* text, std::size_t* length) const;

  // kUnfinished: not resolved (yet, or never).  kComplete: the first *frames frames of the entry hold.
  SlotState site(std::uint32_t id, Copy<SiteEntry>* out, std::uint32_t* frames) const;

 private:
  struct Part {
    const unsigned char* base = nullptr;
    std::uint32_t entries = 0;
  };
  const char* check(const unsigned char* base, std::size_t bytes);
  std::uint32_t entries(Section which) const { return parts_[static_cast<unsigned>(which)].entries; }
  template <typename T>
  const T* entry(Section which, std::uint64_t index) const;
  template <typename T>
  SlotState slot(Section which, std::uint64_t n, Copy<T>* out) const;
  Ring ring(Section which, const std::atomic<std::uint64_t>& head) const;

  const unsigned char* base_ = nullptr;
  const char* problem_ = "no memory";
  Part parts_[kSections];
};

}  // namespace dshang::flight
