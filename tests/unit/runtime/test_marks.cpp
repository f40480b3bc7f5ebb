// GPU progress: marks placed by the calling thread, read by the poller, against a GPU that does what it is told.
#include <thread>

#include "catch.h"
#include "fakes.h"
#include "interpose/runtime/marks.h"
#include "interpose/runtime/poller.h"

using namespace dshang;
using namespace dshang::flight;
using namespace dshang::interpose;
using runtime::CallSpan;

namespace {

// Rounds are made by hand: a thread of its own would make them whenever it likes.
struct Bench {
  Bench() {
    marks::fall_asleep();
    poller::fall_asleep();
    poller::pretend_started();
  }
  fakes::Gpu gpu;
  fakes::Recorder recorder;

  std::uint64_t launch(void* stream) {
    std::uint64_t n = recorder.call(stream);
    CallSpan span{n, n, 0, stream};
    runtime::mark_end(span, runtime::mark_start(span));
    return n;
  }
};

}  // namespace

TEST_CASE("a call goes from marked to started to done as its stream does") {
  Bench bench;
  void* stream = fakes::Gpu::stream(1);
  std::uint64_t n = bench.launch(stream);
  CHECK(bench.recorder.flags(n) == (kCallStartMarked | kCallMarked));
  poller::round();
  CHECK(bench.recorder.flags(n) == (kCallStartMarked | kCallMarked));
  bench.gpu.advance(stream, 1);
  poller::round();
  CHECK((bench.recorder.flags(n) & kCallStarted) != 0);
  CHECK((bench.recorder.flags(n) & kCallDone) == 0);
  CHECK(bench.recorder.writer().call(n)->started_ns.load() != 0);
  bench.gpu.advance(stream, 1);
  poller::round();
  CHECK((bench.recorder.flags(n) & kCallDone) != 0);
  CHECK(bench.recorder.writer().call(n)->done_ns.load() >= bench.recorder.writer().call(n)->started_ns.load());
  CHECK(bench.gpu.relaxed == 1);
  CHECK(bench.recorder.header().poll_ns.load() != 0);
  CHECK(bench.recorder.header().poll_stuck_ns.load() == 0);
}

TEST_CASE("only the oldest unfinished call of a stream is asked about") {
  Bench bench;
  void* busy = fakes::Gpu::stream(1);
  void* other = fakes::Gpu::stream(2);
  std::vector<std::uint64_t> calls;
  for (int i = 0; i < 50; ++i) calls.push_back(bench.launch(busy));
  std::uint64_t beside = bench.launch(other);
  poller::round();
  unsigned before = bench.gpu.queried;
  poller::round();
  CHECK(bench.gpu.queried - before == 4);  // end and start, on two streams
  bench.gpu.advance(other, 2);
  bench.gpu.advance(busy, 60);
  poller::round();
  CHECK((bench.recorder.flags(beside) & kCallDone) != 0);
  for (int i = 0; i < 50; ++i) CHECK(((bench.recorder.flags(calls[i]) & kCallDone) != 0) == (i < 30));
}

TEST_CASE("a call whose wrapper has not returned can be seen to start, and does not hide others") {
  Bench bench;
  void* stream = fakes::Gpu::stream(1);
  std::uint64_t open = bench.recorder.call(stream);
  CallSpan span{open, open, 0, stream};
  runtime::Mark mark = runtime::mark_start(span);
  std::uint64_t later = bench.launch(stream);
  bench.gpu.advance(stream, 3);
  poller::round();
  CHECK((bench.recorder.flags(open) & kCallStarted) != 0);
  CHECK((bench.recorder.flags(open) & kCallDone) == 0);
  CHECK((bench.recorder.flags(later) & kCallDone) != 0);
  runtime::mark_end(span, mark);
  bench.gpu.advance(stream, 1);
  poller::round();
  CHECK((bench.recorder.flags(open) & kCallDone) != 0);
}

TEST_CASE("a cancelled mark ends the matter") {
  Bench bench;
  void* stream = fakes::Gpu::stream(1);
  std::uint64_t n = bench.recorder.call(stream);
  CallSpan span{n, n, 0, stream};
  runtime::Mark mark = runtime::mark_start(span);
  runtime::mark_cancel(span, mark);
  bench.gpu.advance(stream, 1);
  poller::round();
  CHECK((bench.recorder.flags(n) & (kCallDone | kCallMarked)) == 0);
  std::uint64_t next = bench.launch(stream);
  bench.gpu.advance(stream, 2);
  poller::round();
  CHECK((bench.recorder.flags(next) & kCallDone) != 0);
}

TEST_CASE("one pair of marks covers the calls of a group on its stream and no other") {
  Bench bench;
  void* stream = fakes::Gpu::stream(1);
  std::uint64_t first = bench.recorder.call(stream, 7);
  std::uint64_t other_stream = bench.recorder.call(fakes::Gpu::stream(2), 7);
  std::uint64_t other_group = bench.recorder.call(stream, 8);
  std::uint64_t last = bench.recorder.call(stream, 7);
  CallSpan span{first, last, 7, stream};
  runtime::mark_end(span, runtime::mark_start(span));
  bench.gpu.advance(stream, 2);
  poller::round();
  CHECK((bench.recorder.flags(first) & kCallDone) != 0);
  CHECK((bench.recorder.flags(last) & kCallDone) != 0);
  CHECK(bench.recorder.flags(other_stream) == 0);
  CHECK(bench.recorder.flags(other_group) == 0);
}

TEST_CASE("a record that the ring has overwritten is left alone") {
  Bench bench;
  void* stream = fakes::Gpu::stream(1);
  std::uint64_t n = bench.launch(stream);
  for (std::uint32_t i = 0; i < kCallEntries; ++i) bench.recorder.call(stream);
  bench.gpu.advance(stream, 2);
  poller::round();
  CHECK(bench.recorder.flags(n + kCallEntries) == 0);
}

TEST_CASE("without a driver, or where a mark is refused, progress is unknown") {
  Bench bench;
  void* stream = fakes::Gpu::stream(1);
  SECTION("the stream refuses") {
    bench.gpu.record_fails = 1;
    std::uint64_t n = bench.launch(stream);
    CHECK(bench.recorder.flags(n) == kCallProgressUnknown);
  }
  SECTION("no event can be made") {
    bench.gpu.create_fails = true;
    std::uint64_t n = bench.launch(stream);
    CHECK(bench.recorder.flags(n) == kCallProgressUnknown);
  }
  SECTION("the stream's context is not current and has no event in stock") {
    bench.gpu.context_of[stream] = fakes::Gpu::context(1);
    std::uint64_t n = bench.launch(stream);
    CHECK(bench.recorder.flags(n) == kCallProgressUnknown);
    poller::round();  // the poller makes some
    std::uint64_t later = bench.launch(stream);
    CHECK((bench.recorder.flags(later) & kCallMarked) != 0);
  }
  SECTION("no driver at all") {
    driver::replace_functions(nullptr);
    CHECK_FALSE(runtime::capturing(stream));
    std::uint64_t n = bench.launch(stream);
    CHECK(bench.recorder.flags(n) == kCallProgressUnknown);
  }
}

TEST_CASE("a context that answers with a lasting error makes its calls unknown, never finished") {
  Bench bench;
  void* stream = fakes::Gpu::stream(1);
  std::uint64_t first = bench.launch(stream), second = bench.launch(stream);
  poller::round();
  bench.gpu.broken = 700;
  poller::round();
  for (std::uint64_t n : {first, second}) {
    CHECK((bench.recorder.flags(n) & kCallProgressUnknown) != 0);
    CHECK((bench.recorder.flags(n) & kCallDone) == 0);
  }
  CHECK(bench.recorder.flags(bench.launch(stream)) == kCallProgressUnknown);
}

TEST_CASE("events are used again, not made anew") {
  Bench bench;
  void* stream = fakes::Gpu::stream(1);
  for (int i = 0; i < 100; ++i) {
    bench.launch(stream);
    bench.gpu.advance(stream, 2);
    poller::round();
  }
  unsigned made = bench.gpu.created;
  for (int i = 0; i < 1000; ++i) {
    bench.launch(stream);
    bench.gpu.advance(stream, 2);
    poller::round();
  }
  CHECK(bench.gpu.created == made);
}

TEST_CASE("more outstanding calls than there are pairs are unknown; nothing is lost once they are done") {
  Bench bench;
  void* stream = fakes::Gpu::stream(1);
  std::uint64_t last = 0;
  for (std::uint32_t i = 0; i < marks::kPairs + 10; ++i) last = bench.launch(stream);
  CHECK(bench.recorder.flags(last) == kCallProgressUnknown);
  bench.gpu.advance(stream, 2 * marks::kPairs);
  poller::round();
  std::uint64_t next = bench.launch(stream);
  bench.gpu.advance(stream, 2);
  poller::round();
  CHECK((bench.recorder.flags(next) & kCallDone) != 0);
}

TEST_CASE("a capturing stream is recognised") {
  Bench bench;
  void* stream = fakes::Gpu::stream(1);
  CHECK_FALSE(runtime::capturing(stream));
  bench.gpu.capturing.insert(stream);
  CHECK(runtime::capturing(stream));
}

TEST_CASE("each context's marks are asked about with that context current") {
  Bench bench;
  void* stream = fakes::Gpu::stream(1);
  void* foreign = fakes::Gpu::stream(2);
  bench.gpu.context_of[foreign] = fakes::Gpu::context(1);
  std::uint64_t first = bench.launch(stream);
  bench.gpu.current = fakes::Gpu::context(1);
  std::uint64_t second = bench.launch(foreign);
  bench.gpu.advance(stream, 2);
  bench.gpu.advance(foreign, 2);
  poller::round();
  CHECK((bench.recorder.flags(first) & kCallDone) != 0);
  CHECK((bench.recorder.flags(second) & kCallDone) != 0);
}

TEST_CASE("threads that launch while the poller looks lose no call") {
  Bench bench;
  constexpr unsigned kThreads = 3, kCalls = 2000;
  std::atomic<bool> over{false};
  std::thread poller([&] {
    while (!over) poller::round();
  });
  std::vector<std::vector<std::uint64_t>> calls(kThreads);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      void* stream = fakes::Gpu::stream(t + 1);
      for (unsigned i = 0; i < kCalls; ++i) {
        calls[t].push_back(bench.launch(stream));
        bench.gpu.advance(stream, 2);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  over = true;
  poller.join();
  poller::round();
  unsigned finished = 0, unknown = 0;
  for (const auto& of_thread : calls) {
    for (std::uint64_t n : of_thread) {
      finished += (bench.recorder.flags(n) & kCallDone) != 0;
      unknown += (bench.recorder.flags(n) & kCallProgressUnknown) != 0;
    }
  }
  CHECK(finished + unknown == kThreads * kCalls);
  CHECK(finished > 0);
}
