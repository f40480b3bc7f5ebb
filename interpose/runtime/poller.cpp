#include "interpose/runtime/poller.h"

#include <stdio.h>
#include <sys/prctl.h>

#include "core/rank/base_libc.h"
#include "core/rank/param.h"
#include "interpose/runtime/driver.h"
#include "interpose/runtime/log.h"
#include "interpose/runtime/marks.h"
#include "interpose/runtime/memory.h"

DSHANG_PARAM(integer, GPU_POLL_MS, "10", "1..1000",
             "milliseconds between two looks at the progress of the GPU");

namespace dshang::interpose::poller {
namespace {

using marks::kNone;
using marks::Pair;
using marks::PairState;

struct Stream {
  void* handle;
  unsigned context;
  std::uint32_t head, tail;  // pairs, kNone = empty
};

constexpr unsigned kStreams = 256;

Stream streams[kStreams];
unsigned stream_count = 0;
std::atomic<bool> started{false}, stopping{false}, in_driver{false};
bool relaxed = false;  // the thread has its capture mode
std::uint64_t memory_looked_ns = 0;

// The queue of the stream, an idle one taken over where it has none; null = too many busy streams.
Stream* queue_of(void* handle, unsigned context) {
  Stream* idle = nullptr;
  for (unsigned i = 0; i < stream_count; ++i) {
    Stream& stream = streams[i];
    if (stream.handle == handle && stream.context == context) return &stream;
    if (stream.head == kNone) idle = &stream;
  }
  if (!idle && stream_count < kStreams) idle = &streams[stream_count++];
  if (idle) *idle = {handle, context, kNone, kNone};
  return idle;
}

void give_up(std::uint32_t index) {
  marks::note(marks::pair(index).calls, flight::kCallProgressUnknown, 0, 0);
}

void sort_in() {
  for (std::uint32_t index = marks::take_handed_over(); index != kNone;) {
    Pair& pair = marks::pair(index);
    std::uint32_t next = pair.next.load(std::memory_order_relaxed);
    pair.next.store(kNone, std::memory_order_relaxed);
    if (Stream* stream = queue_of(pair.calls.stream, pair.context)) {
      if (stream->head == kNone) {
        stream->head = index;
      } else {
        marks::pair(stream->tail).next.store(index, std::memory_order_relaxed);
      }
      stream->tail = index;
    } else {
      // Not recycled: its call may not have placed the end mark yet.  That many busy streams do not occur.
      give_up(index);
    }
    index = next;
  }
}

enum class Answer { kReached, kNotYet, kBroken };

Answer ask(const driver::Functions& cuda, void* event) {
  int result = cuda.event_query(event);
  if (result == driver::kSuccess) return Answer::kReached;
  return result == driver::kNotReady ? Answer::kNotYet : Answer::kBroken;
}

// Takes pair `index` (which follows `before`, kNone = it is the head) out of the queue; returns the one after
// it.
std::uint32_t unlink(Stream& stream, std::uint32_t before, std::uint32_t index) {
  std::uint32_t after = marks::pair(index).next.load(std::memory_order_relaxed);
  if (before == kNone) {
    stream.head = after;
  } else {
    marks::pair(before).next.store(after, std::memory_order_relaxed);
  }
  if (stream.tail == index) stream.tail = before;
  return after;
}

// The context answers with an error that stays (a fault of a kernel, a destroyed context): what hangs in it
// is unknown.
void abandon(Stream& stream) {
  marks::abandon_context(stream.context);
  for (std::uint32_t index = stream.head; index != kNone; index = marks::pair(index).next.load())
    give_up(index);
  stream.head = stream.tail = kNone;
}

// True if the pair's call was reached only now.
bool look_at_start(const driver::Functions& cuda, Pair& pair) {
  if (!pair.has_start || pair.started || ask(cuda, pair.start) != Answer::kReached) return false;
  pair.started = true;
  marks::note(pair.calls, flight::kCallStarted, rank::now_ns(), 0);
  return true;
}

// Goes on until the first call that is not done; calls whose wrapper has not returned yet are passed over.
void look_at(const driver::Functions& cuda, Stream& stream) {
  std::uint32_t before = kNone;
  for (std::uint32_t index = stream.head; index != kNone && !is_stopping();) {
    Pair& pair = marks::pair(index);
    PairState state = pair.state.load(std::memory_order_acquire);
    if (state == PairState::kCancelled) {
      std::uint32_t after = unlink(stream, before, index);
      marks::recycle(index);
      index = after;
      continue;
    }
    if (state == PairState::kOpen) {
      look_at_start(cuda, pair);
      before = index;
      index = pair.next.load(std::memory_order_relaxed);
      continue;
    }
    Answer answer = ask(cuda, pair.end);
    if (answer == Answer::kBroken) return abandon(stream);
    if (answer == Answer::kNotYet) {
      look_at_start(cuda, pair);
      return;
    }
    std::uint64_t now = rank::now_ns();
    marks::note(pair.calls, flight::kCallDone | (pair.has_start ? flight::kCallStarted : 0u),
                pair.has_start && !pair.started ? now : 0, now);
    std::uint32_t after = unlink(stream, before, index);
    marks::recycle(index);
    index = after;
  }
}

bool enter_context(const driver::Functions& cuda, unsigned context) {
  if (marks::is_abandoned(context) || cuda.ctx_set_current(marks::context(context)) != driver::kSuccess)
    return false;
  if (!relaxed && cuda.thread_exchange_capture_mode) {
    int mode = driver::kCaptureRelaxed;
    relaxed = cuda.thread_exchange_capture_mode(&mode) == driver::kSuccess;
  }
  return true;
}

// How much of the device is free, in the first context (a rank has one device).  Not at every round: the driver takes
// its lock for it.
void look_at_memory() {
  constexpr std::uint64_t kEvery = 250'000'000;
  std::uint64_t now = rank::now_ns();
  if (now - memory_looked_ns >= kEvery && memory::look_at_device()) memory_looked_ns = now;
}

// The CUDA version that the driver speaks, e.g. "13.0" (cuDriverGetVersion: 1000 * major + 10 * minor).
void record_driver_version(const flight::Writer& writer) {
  const driver::Functions* cuda = driver::functions();
  int version;
  if (!cuda || !cuda->driver_get_version || cuda->driver_get_version(&version) != driver::kSuccess) return;
  char text[32];
  snprintf(text, sizeof text, "%d.%d", version / 1000, version % 1000 / 10);
  writer.fact("version.cuda_driver", text);
}

void* run(void*) {
  prctl(PR_SET_NAME, "dshang-poll");
  if (const flight::Writer* writer = runtime::recorder()) {
    std::uint32_t own = writer->thread(rank::kernel_thread_id());
    if (own < flight::kThreadEntries) writer->thread_entry(own).flags.fetch_or(flight::kThreadOwn);
    record_driver_version(*writer);
  }
  unsigned pause = static_cast<unsigned>(param_GPU_POLL_MS.value());
  while (!is_stopping()) {
    round();
    rank::sleep_ms(pause);
  }
  return nullptr;
}

}  // namespace

void round() {
  const flight::Writer* writer = runtime::recorder();
  const driver::Functions* cuda = driver::functions();
  if (!writer || !cuda) return;
  flight::Header& header = writer->header();
  sort_in();
  in_driver.store(true, std::memory_order_seq_cst);
  header.poll_stuck_ns.store(rank::now_ns(), std::memory_order_relaxed);
  unsigned contexts = marks::context_count();
  for (unsigned context = 0; context < contexts && !is_stopping(); ++context) {
    bool usable = enter_context(*cuda, context);
    if (usable) marks::stock_up(context);
    if (usable && context == 0) look_at_memory();
    for (unsigned i = 0; i < stream_count && !is_stopping(); ++i) {
      if (streams[i].context != context || streams[i].head == kNone) continue;
      if (usable) {
        look_at(*cuda, streams[i]);
      } else {
        abandon(streams[i]);
      }
      header.poll_stuck_ns.store(rank::now_ns(), std::memory_order_relaxed);
    }
  }
  header.poll_stuck_ns.store(0, std::memory_order_relaxed);
  in_driver.store(false, std::memory_order_release);
  header.poll_ns.store(rank::now_ns(), std::memory_order_relaxed);
}

void start() {
  if (started.load(std::memory_order_relaxed) || started.exchange(true)) return;
  if (!rank::start_thread(run, nullptr)) {
    DSHANG_LOG_ONCE("no thread could be started to watch the GPU; its progress is unknown");
  }
}

void pretend_started() { started.store(true); }

void stop() {
  stopping.store(true, std::memory_order_seq_cst);
  for (int i = 0; i < 10 && in_driver.load(std::memory_order_seq_cst); ++i) rank::sleep_ms(1);
}

bool is_stopping() { return stopping.load(std::memory_order_seq_cst); }

void fall_asleep() {
  started.store(false, std::memory_order_relaxed);
  stopping.store(false, std::memory_order_relaxed);
  in_driver.store(false, std::memory_order_relaxed);
  stream_count = 0;
  relaxed = false;
  memory_looked_ns = 0;
}

}  // namespace dshang::interpose::poller
