// What the wrappers know of the calling thread.  Plain data in static TLS, small: every thread of every process that
// inherits the preload carries it.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/flight/writer.h"
#include "interpose/resolve/resolver.h"

namespace dshang::interpose::calls {

// The group that is open on this thread in one NCCL (NCCL keeps its depth per thread and library).
struct Group {
  std::uint32_t depth;
  std::uint32_t ordinal;       // in this process, from 1
  std::uint64_t first, last;   // records between which its calls lie; count says whether there are any
  std::uint32_t count;
  std::uint32_t creations;     // communicators that are being created in it
};

// Where a wrapper was entered: tells a call that NCCL makes to its own public functions from one of the host.
struct Entry {
  const void* frame;      // of the outermost wrapper that this thread is in; null = none
  const void* caller;     // its return address
  void* asked = nullptr;  // the real function, where the caller had it from dlsym(); else to be looked up by the caller
};

struct Thread {
  Entry nccl, cuda;
  std::uint32_t waking;          // to which waking `index` and `entry` belong
  std::uint32_t index;           // in flight memory; kThreadEntries = no room
  flight::ThreadEntry* entry;    // null = no room
  Group groups[resolve::kLibraries];
};

extern thread_local constinit Thread this_thread;

// Grows with every new flight memory, from 0: a forked child wakes again.
extern std::atomic<std::uint32_t> wakings;

// Marks the calling thread as inside a wrapper for as long as it lives.  nested(): inside another one already, so that
// the call comes from the real library and passes straight through.
//
// An exception may unwind the outer wrapper, which has no cleanup (libdshang.so carries no unwinder).  The mark it
// leaves behind is recognised by the stack, which has shrunk since, or by a caller that cannot be inside itself.
class Entered {
 public:
  Entered(Entry& entry, const void* frame, const void* caller) : entry_(entry) {
    nested_ = entry.frame && frame < entry.frame && caller != entry.caller;
    if (!nested_) entry = {frame, caller, nullptr};
  }
  ~Entered() {
    if (!nested_) entry_.frame = nullptr;
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;
  bool nested() const { return nested_; }

 private:
  Entry& entry_;
  bool nested_;
};

// The host's errno: given to the real function as it was, and back to the host as the real function left it.
class HostErrno {
 public:
  HostErrno();
  ~HostErrno();
  void before_real() const;
  void after_real();

 private:
  int* where_;
  int value_;
};

// CLOCK_MONOTONIC, nanoseconds.
std::uint64_t now_ns();

// The calling thread, with its place in the flight memory.
Thread& known_thread(const flight::Writer& writer);

// Says in flight memory that the calling thread is inside `row` since `since_ns`, or in none.
void inside(const flight::Writer& writer, Row row, std::uint64_t since_ns);
void outside(const flight::Writer& writer, std::uint64_t now);

// Interns the names of the rows in a new flight memory.
void intern_names(const flight::Writer& writer);

}  // namespace dshang::interpose::calls
