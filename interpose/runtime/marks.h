// Events on streams that tell when the GPU reaches a call and when it is done with it.  What the wrappers
// call is in api.h; here is what the poller works with.
//
// A pair of events belongs to one context and is used again and again: never destroyed (destroying can hang),
// never timed.  Pairs are made by the poller ahead of need, by the calling thread only where none is left.
// The calling threads hand pairs over by one compare-and-swap; nothing here waits.
#pragma once

#include <atomic>
#include <cstdint>

#include "interpose/runtime/api.h"

namespace dshang::interpose::marks {

inline constexpr std::uint32_t kPairs = 8192;  // of the process
inline constexpr unsigned kContexts = 32;
inline constexpr std::uint32_t kNone = 0xffffffff;

enum class PairState : std::uint32_t {
  kFree,
  kOpen,       // start mark placed, the real call has not returned
  kMarked,     // end mark placed
  kCancelled,  // there will be no end mark
};

struct Pair {
  void* start;  // CUevent
  void* end;
  runtime::CallSpan calls;
  std::atomic<PairState> state;
  std::atomic<std::uint32_t> next;  // in the list that it is in
  std::uint32_t context;            // index
  std::uint32_t use;                // grows at every use: tells an old Mark
  bool has_start, started;          // `started`: the poller's own
};

// The pairs handed over since the last call, oldest first: index of the first, chained by `next`.  Poller
// only.
std::uint32_t take_handed_over();
Pair& pair(std::uint32_t index);

// Gives a pair back for further use.
void recycle(std::uint32_t index);

unsigned context_count();
void* context(unsigned index);         // CUcontext
void abandon_context(unsigned index);  // it answers with errors: no marks in it any more
bool is_abandoned(unsigned index);

// Makes pairs until `context` has some in stock; its context is current on the calling thread.  Poller only.
void stock_up(unsigned context);

// Sets flags and times on every record that the span covers and that is still there.
void note(const runtime::CallSpan& calls, std::uint32_t flags, std::uint64_t started_ns,
          std::uint64_t done_ns);

// A forked child has none of its parent's contexts.  Async-signal-safe.
void fall_asleep();

}  // namespace dshang::interpose::marks
