#include "interpose/runtime/marks.h"

#include "core/rank/param.h"
#include "interpose/runtime/driver.h"
#include "interpose/runtime/poller.h"

DSHANG_PARAM(bool, GPU_MARKS, "1", "0|1",
             "mark on the GPU's streams when a call is done; 0: progress of the GPU is unknown, no CUDA call "
             "is added");
DSHANG_PARAM(bool, START_MARK, "1", "0|1",
             "also mark when the GPU reaches a call, not only when it is done with it");

namespace dshang::interpose::marks {
namespace {

using runtime::CallSpan;

// Heads carry a counter in their upper half: a compare-and-swap then fails where a pair went away and came
// back.
struct List {
  std::atomic<std::uint64_t> head{kNone};
  std::atomic<std::uint32_t> length{0};
};

struct Context {
  std::atomic<void*> handle;
  std::atomic<bool> abandoned;
  List stock;
};

constexpr std::uint32_t kStock = 64;

Pair pairs[kPairs];
std::atomic<std::uint32_t> pairs_made{0};
Context contexts[kContexts];
List handed_over;

void push(List& list, std::uint32_t index) {
  std::uint64_t head = list.head.load(std::memory_order_relaxed);
  do {
    pairs[index].next.store(static_cast<std::uint32_t>(head), std::memory_order_relaxed);
  } while (!list.head.compare_exchange_weak(head, ((head >> 32) + 1) << 32 | index, std::memory_order_release,
                                            std::memory_order_relaxed));
  list.length.fetch_add(1, std::memory_order_relaxed);
}

std::uint32_t pop(List& list) {
  std::uint64_t head = list.head.load(std::memory_order_acquire);
  std::uint32_t index;
  do {
    index = static_cast<std::uint32_t>(head);
    if (index == kNone) return kNone;
  } while (!list.head.compare_exchange_weak(
      head, ((head >> 32) + 1) << 32 | pairs[index].next.load(std::memory_order_relaxed),
      std::memory_order_acquire, std::memory_order_acquire));
  list.length.fetch_sub(1, std::memory_order_relaxed);
  return index;
}

std::uint32_t make_pair(const driver::Functions& cuda, unsigned context) {
  std::uint32_t index = pairs_made.fetch_add(1, std::memory_order_relaxed);
  if (index >= kPairs) {
    pairs_made.fetch_sub(1, std::memory_order_relaxed);
    return kNone;
  }
  Pair& made = pairs[index];
  made.context = context;
  // A pair whose events could not be made stays unused for good.
  if (cuda.event_create(&made.start, driver::kDisableTiming) != driver::kSuccess) return kNone;
  if (cuda.event_create(&made.end, driver::kDisableTiming) != driver::kSuccess) return kNone;
  return index;
}

// The context that the stream belongs to; null = unknown.
void* context_of(const driver::Functions& cuda, void* stream) {
  void* context = nullptr;
  if (cuda.stream_get_ctx && cuda.stream_get_ctx(stream, &context) == driver::kSuccess && context)
    return context;
  return cuda.ctx_get_current(&context) == driver::kSuccess ? context : nullptr;
}

// Its index, entered if it is new; kContexts = no room.
unsigned index_of(void* handle) {
  for (unsigned i = 0; i < kContexts; ++i) {
    void* found = contexts[i].handle.load(std::memory_order_acquire);
    if (!found && contexts[i].handle.compare_exchange_strong(found, handle, std::memory_order_acq_rel))
      return i;
    if (found == handle) return i;
  }
  return kContexts;
}

bool is_current(const driver::Functions& cuda, void* context) {
  void* current = nullptr;
  return cuda.ctx_get_current(&current) == driver::kSuccess && current == context;
}

// A pair of the stream's context.  An event can be made only in the current context.
std::uint32_t get_pair(const driver::Functions& cuda, void* stream) {
  void* handle = context_of(cuda, stream);
  if (!handle) return kNone;
  unsigned context = index_of(handle);
  if (context == kContexts || is_abandoned(context)) return kNone;
  std::uint32_t index = pop(contexts[context].stock);
  if (index == kNone && is_current(cuda, handle)) index = make_pair(cuda, context);
  return index;
}

runtime::Mark as_mark(std::uint32_t index) { return std::uint64_t{pairs[index].use} << 32 | (index + 1); }

Pair* pair_of(runtime::Mark mark) {
  std::uint32_t index = static_cast<std::uint32_t>(mark) - 1;
  if (!mark || index >= kPairs || pairs[index].use != static_cast<std::uint32_t>(mark >> 32)) return nullptr;
  return &pairs[index];
}

}  // namespace

std::uint32_t take_handed_over() {
  std::uint64_t head = handed_over.head.load(std::memory_order_relaxed);
  while (!handed_over.head.compare_exchange_weak(head, ((head >> 32) + 1) << 32 | kNone,
                                                 std::memory_order_acquire, std::memory_order_relaxed)) {
  }
  std::uint32_t newest = static_cast<std::uint32_t>(head), oldest = kNone;
  while (newest != kNone) {
    std::uint32_t before = pairs[newest].next.load(std::memory_order_relaxed);
    pairs[newest].next.store(oldest, std::memory_order_relaxed);
    oldest = newest;
    newest = before;
  }
  return oldest;
}

Pair& pair(std::uint32_t index) { return pairs[index]; }

void recycle(std::uint32_t index) {
  pairs[index].state.store(PairState::kFree, std::memory_order_relaxed);
  push(contexts[pairs[index].context].stock, index);
}

unsigned context_count() {
  unsigned count = 0;
  while (count < kContexts && contexts[count].handle.load(std::memory_order_acquire)) ++count;
  return count;
}

void* context(unsigned index) { return contexts[index].handle.load(std::memory_order_acquire); }
void abandon_context(unsigned index) { contexts[index].abandoned.store(true, std::memory_order_relaxed); }
bool is_abandoned(unsigned index) { return contexts[index].abandoned.load(std::memory_order_relaxed); }

void stock_up(unsigned context) {
  const driver::Functions* cuda = driver::functions();
  while (cuda && contexts[context].stock.length.load(std::memory_order_relaxed) < kStock) {
    std::uint32_t index = make_pair(*cuda, context);
    if (index == kNone) return;
    push(contexts[context].stock, index);
  }
}

void note(const CallSpan& calls, std::uint32_t flags, std::uint64_t started_ns, std::uint64_t done_ns) {
  const flight::Writer* writer = runtime::recorder();
  if (!writer || calls.last < calls.first) return;
  std::uint64_t first = calls.first;
  if (calls.last - first >= flight::kCallEntries) first = calls.last - flight::kCallEntries + 1;
  for (std::uint64_t n = first; n <= calls.last; ++n) {
    flight::CallRecord* record = writer->call(n);
    if (!record || record->stream != reinterpret_cast<std::uint64_t>(calls.stream)) continue;
    if (calls.group && record->group != calls.group) continue;
    if (started_ns && !record->started_ns.load(std::memory_order_relaxed)) {
      record->started_ns.store(started_ns, std::memory_order_relaxed);
    }
    if (done_ns) record->done_ns.store(done_ns, std::memory_order_relaxed);
    record->flags.fetch_or(flags, std::memory_order_release);
  }
}

void fall_asleep() {
  std::uint32_t made = pairs_made.exchange(0, std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < made && i < kPairs; ++i) ++pairs[i].use;
  for (Context& context : contexts) {
    context.handle.store(nullptr, std::memory_order_relaxed);
    context.abandoned.store(false, std::memory_order_relaxed);
    context.stock.head.store(kNone, std::memory_order_relaxed);
    context.stock.length.store(0, std::memory_order_relaxed);
  }
  handed_over.head.store(kNone, std::memory_order_relaxed);
}

}  // namespace dshang::interpose::marks

namespace dshang::interpose::runtime {

using namespace marks;

bool capturing(void* stream) {
  if (!param_GPU_MARKS.value()) return false;  // nothing is put on it
  const driver::Functions* cuda = driver::functions();
  if (!cuda) return false;  // likewise
  // The legacy stream answers with an error while another stream captures: that counts as capturing too.
  int status = driver::kCaptureNone;
  return cuda->stream_is_capturing(stream, &status) != driver::kSuccess || status != driver::kCaptureNone;
}

Mark mark_start(const CallSpan& calls) {
  if (!param_GPU_MARKS.value()) return 0;
  const driver::Functions* cuda = driver::functions();
  if (!cuda || poller::is_stopping()) return 0;
  std::uint32_t index = get_pair(*cuda, calls.stream);
  if (index == kNone) return 0;
  Pair& taken = pairs[index];
  taken.calls = calls;
  taken.started = false;
  taken.has_start = false;
  ++taken.use;
  if (param_START_MARK.value() && cuda->event_record(taken.start, calls.stream) == driver::kSuccess) {
    taken.has_start = true;
    note(calls, flight::kCallStartMarked, 0, 0);
  }
  taken.state.store(PairState::kOpen, std::memory_order_relaxed);
  Mark mark = as_mark(index);
  push(handed_over, index);
  poller::start();
  return mark;
}

void mark_end(const CallSpan& calls, Mark mark) {
  const driver::Functions* cuda = driver::functions();
  Pair* taken = pair_of(mark);
  if (!taken || !cuda) {
    note(calls, flight::kCallProgressUnknown, 0, 0);
    return;
  }
  bool placed = cuda->event_record(taken->end, calls.stream) == driver::kSuccess;
  note(calls, placed ? flight::kCallMarked : flight::kCallProgressUnknown, 0, 0);
  taken->state.store(placed ? PairState::kMarked : PairState::kCancelled, std::memory_order_release);
}

void mark_cancel(const CallSpan&, Mark mark) {
  if (Pair* taken = pair_of(mark)) taken->state.store(PairState::kCancelled, std::memory_order_release);
}

void graph_launched() {
  if (const flight::Writer* writer = recorder()) {
    writer->header().graph_launches.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace dshang::interpose::runtime
