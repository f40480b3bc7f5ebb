#include "catch.h"
#include "image.h"

using namespace dshang::flight;
using dshang::flight::test::Image;

TEST_CASE("a ring keeps its newest records") {
  Image image;
  Reader reader = image.reader();
  for (std::uint64_t i = 0; i < kCallEntries + 100; ++i) image.call(i);
  Ring ring = reader.calls();
  CHECK(ring.head == kCallEntries + 100);
  CHECK(ring.first() == 100);
  Copy<CallRecord> call;
  CHECK(reader.call(99, &call) == SlotState::kGone);
  CHECK(reader.call(0, &call) == SlotState::kGone);
  for (std::uint64_t n : {std::uint64_t{100}, ring.head - 1}) {
    REQUIRE(reader.call(n, &call) == SlotState::kComplete);
    CHECK(call->number == n);
  }
  CHECK(reader.call(ring.head, &call) == SlotState::kUnfinished);  // the slot still holds the lap before
}

TEST_CASE("a record that is being written is unfinished, the one it overwrites is gone") {
  Image image;
  Reader reader = image.reader();
  Copy<CallRecord> call;
  auto open = image.writer().open_call();
  CHECK(reader.call(0, &call) == SlotState::kUnfinished);
  open.complete();
  CHECK(reader.call(0, &call) == SlotState::kComplete);
  for (std::uint64_t i = 1; i < kCallEntries; ++i) image.call(i);
  auto next_lap = image.writer().open_call();
  CHECK(reader.call(kCallEntries, &call) == SlotState::kUnfinished);
  CHECK(reader.call(0, &call) == SlotState::kGone);
  CHECK(image.writer().call(0) == nullptr);
  next_lap.complete();
  CHECK(reader.call(kCallEntries, &call) == SlotState::kComplete);
}

TEST_CASE("a claimed record whose stamp is not there yet is unfinished") {
  Image image;
  Reader reader = image.reader();
  image.header().call_head.store(1);
  Copy<CallRecord> call;
  CHECK(reader.call(0, &call) == SlotState::kUnfinished);
}

TEST_CASE("a stamp that its slot cannot hold is gone") {
  Image image;
  Reader reader = image.reader();
  image.call(1);
  CallRecord* slots = image.section<CallRecord>(Section::kCalls);
  Copy<CallRecord> call;
  CallProgress progress;
  slots[0].stamp.store(complete_stamp(5));
  CHECK(reader.call(0, &call) == SlotState::kGone);
  CHECK(reader.call_progress(0, &progress) == SlotState::kGone);
  slots[0].stamp.store(UINT64_MAX);
  CHECK(reader.call(0, &call) == SlotState::kGone);
  slots[0].stamp.store(0);
  CHECK(reader.call(0, &call) == SlotState::kUnfinished);
}

TEST_CASE("any number of a record may be asked for") {
  Image image;
  Reader reader = image.reader();
  image.call(1);
  Copy<CallRecord> call;
  CallProgress progress;
  for (std::uint64_t n : {UINT64_MAX, UINT64_MAX / 2, std::uint64_t{1} << 40}) {
    CHECK(reader.call(n, &call) != SlotState::kComplete);
    CHECK(reader.call_progress(n, &progress) != SlotState::kComplete);
  }
}
