// Writers and readers at the same time; also meant for the thread sanitizer.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "catch.h"
#include "image.h"

using namespace dshang::flight;
using dshang::flight::test::Image;

TEST_CASE("whatever is read as complete is whole") {
  Image image;
  // A ring of 8 entries: the reader is lapped all the time.
  SectionInfo info = image.header().sections[static_cast<unsigned>(Section::kCalls)];
  image.header().sections[static_cast<unsigned>(Section::kCalls)].entries = 8;
  image.header().sections[static_cast<unsigned>(Section::kCalls)].bytes = 8 * sizeof(CallRecord);
  Reader reader = image.reader();
  REQUIRE(reader);
  std::atomic<bool> stop{false};
  CallRecord* slots = reinterpret_cast<CallRecord*>(image.bytes() + info.offset);
  std::thread writer([&] {
    for (std::uint64_t n = 0; !stop.load(std::memory_order_relaxed); ++n) {
      CallRecord& slot = slots[n % 8];
      slot.stamp.store(writing_stamp(n), std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_release);
      Image::fill(slot, n);
      slot.stamp.store(complete_stamp(n), std::memory_order_release);
      image.header().call_head.store(n + 1, std::memory_order_release);
    }
  });
  std::uint64_t complete = 0, broken = 0, other = 0;
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  for (int round = 0; std::chrono::steady_clock::now() < end; ++round) {
    Ring ring = reader.calls();
    if (!ring.head) continue;
    std::uint64_t n = round % 2 ? ring.first() : ring.head - 1;
    Copy<CallRecord> call;
    if (reader.call(n, &call) != SlotState::kComplete) {
      ++other;
      continue;
    }
    ++complete;
    broken += !(Image::fits_together(*call) && call->number == n);
  }
  stop = true;
  writer.join();
  INFO(complete << " complete, " << other << " overwritten while they were read");
  CHECK(complete > 0);
  CHECK(other > 0);
  CHECK(broken == 0);
}

TEST_CASE("a communicator is seen when it is filled, and its fields are those of its state") {
  Image image;
  Reader reader = image.reader();
  std::thread writer([&] {
    for (std::uint32_t n = 0; n < kCommEntries; ++n) {
      std::uint32_t index = 0;
      CommEntry* comm = image.writer().open_comm(&index);
      comm->id = 1000 + index;
      comm->size = 8;
      comm->state.store(CommState::kCreating, std::memory_order_release);
      std::this_thread::yield();
      comm->rank = 3;
      comm->ready_ns = 5;
      comm->state.store(CommState::kReady, std::memory_order_release);
    }
  });
  std::uint32_t ready = 0, broken = 0;
  while (ready < kCommEntries) {
    std::uint32_t count = reader.comm_count();
    ready = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      Copy<CommEntry> comm;
      if (!reader.comm(i, &comm)) continue;
      bool is_ready = comm->state.load() == CommState::kReady;
      broken +=
          comm->id != 1000 + i || comm->size != 8 || (is_ready && (comm->rank != 3 || comm->ready_ns != 5));
      ready += is_ready;
    }
  }
  writer.join();
  CHECK(broken == 0);
}

TEST_CASE("threads record calls at the same time without losing one") {
  Image image;
  Reader reader = image.reader();
  constexpr unsigned kThreads = 4, kEach = 2000;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&image, t] {
      for (unsigned i = 0; i < kEach; ++i) {
        std::uint64_t n = image.call(t * kEach + i);
        CallRecord* record = image.writer().call(n);
        if (record) record->flags.fetch_or(kCallReturned, std::memory_order_release);
      }
    });
  }
  std::uint64_t broken = 0;
  for (int round = 0; round < 200; ++round) {
    Ring ring = reader.calls();
    for (std::uint64_t n = ring.first(); n < ring.head; n += 97) {
      Copy<CallRecord> call;
      broken += reader.call(n, &call) == SlotState::kComplete && !Image::fits_together(*call);
    }
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(broken == 0);
  std::vector<bool> seen(kThreads * kEach);
  REQUIRE(reader.calls().head == seen.size());
  for (std::uint64_t n = 0; n < seen.size(); ++n) {
    Copy<CallRecord> call;
    REQUIRE(reader.call(n, &call) == SlotState::kComplete);
    REQUIRE(call->number < seen.size());
    seen[call->number] = true;
  }
  CHECK(std::count(seen.begin(), seen.end(), true) == static_cast<std::ptrdiff_t>(seen.size()));
}

TEST_CASE("threads intern the same strings and sites at the same time") {
  Image image;
  Reader reader = image.reader();
  constexpr unsigned kThreads = 4, kNames = 300;
  std::vector<std::uint32_t> ids[kThreads];
  std::atomic<unsigned> claimed{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (unsigned i = 0; i < kNames; ++i) {
        ids[t].push_back(image.writer().string(("module." + std::to_string(i)).c_str()));
        bool is_new = false;
        image.writer().site(1000 + i, &is_new);
        claimed += is_new;
        image.writer().thread(500 + t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(claimed == kNames);
  for (unsigned t = 1; t < kThreads; ++t) CHECK(ids[t] == ids[0]);
  for (unsigned i = 0; i < kNames; ++i) {
    char text[kLongestString];
    std::size_t length = 0;
    REQUIRE(reader.string(ids[0][i], text, &length) == SlotState::kComplete);
    CHECK(std::string(text, length) == "module." + std::to_string(i));
  }
  Copy<ThreadEntry> thread;
  REQUIRE(reader.thread(kThreads, &thread));
  CHECK(thread->tid.load() == 0);
}
