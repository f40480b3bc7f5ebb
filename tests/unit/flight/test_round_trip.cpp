#include <string>

#include "catch.h"
#include "image.h"

using namespace dshang::flight;
using dshang::flight::test::Image;

namespace {

std::string text_of(const Reader& reader, std::uint32_t id) {
  char text[kLongestString];
  std::size_t length = 0;
  if (reader.string(id, text, &length) != SlotState::kComplete) return "<none>";
  return std::string(text, length);
}

}  // namespace

TEST_CASE("identity and operations are read back") {
  Image image;
  Reader reader = image.reader();
  REQUIRE(reader);
  CHECK(reader.problem() == nullptr);
  CHECK(reader.header().rank == 2);
  CHECK(reader.header().world_size == 4);
  CHECK(reader.header().provisional == 1);
  CHECK(reader.header().step.load() == kNoStep);
  CHECK(reader.header().pid > 0);
  CHECK(reader.header().pid_start_ticks > 0);
  char host[sizeof(Header::host) + 1];
  reader.host(host);
  CHECK(std::string(host) == image.header().host);
  Copy<OpInfo> op;
  REQUIRE(reader.op(1, &op));
  CHECK(std::string(op->name) == "all_reduce");
  CHECK(op->traits == (kOpCollective | kOpReduces));
  CHECK_FALSE(reader.op(reader.op_count(), &op));
}

TEST_CASE("records of every ring are read back") {
  Image image;
  const Writer& writer = image.writer();
  Reader reader = image.reader();

  image.call(7);
  Copy<CallRecord> call;
  REQUIRE(reader.calls().head == 1);
  REQUIRE(reader.call(0, &call) == SlotState::kComplete);
  CHECK(Image::fits_together(*call));
  CHECK(call->number == 7);

  auto visit = writer.open_visit();
  visit->kind = VisitKind::kModuleEnter;
  visit->step = 12;
  visit.complete();
  Copy<VisitRecord> visit_copy;
  REQUIRE(reader.visit(0, &visit_copy) == SlotState::kComplete);
  CHECK(visit_copy->kind == VisitKind::kModuleEnter);
  CHECK(visit_copy->step == 12);

  auto memory = writer.open_memory_step();
  memory->peak[0] = 99;
  memory.complete();
  Copy<MemoryStep> memory_copy;
  REQUIRE(reader.memory_step(0, &memory_copy) == SlotState::kComplete);
  CHECK(memory_copy->peak[0] == 99);

  auto failure = writer.open_alloc_failure();
  failure->size = 1 << 20;
  failure.complete();
  Copy<AllocFailure> failure_copy;
  REQUIRE(reader.alloc_failure(0, &failure_copy) == SlotState::kComplete);
  CHECK(failure_copy->size == 1 << 20);

  auto exception = writer.open_exception();
  exception->type = writer.string("ValueError");
  exception.complete();
  Copy<ExceptionRecord> exception_copy;
  REQUIRE(reader.exception(0, &exception_copy) == SlotState::kComplete);
  CHECK(text_of(reader, exception_copy->type) == "ValueError");

  auto stack = writer.open_stack();
  stack->tid = 44;
  stack->frame_count = 1;
  stack->frames[0].line = 3;
  stack.complete();
  Copy<StackRecord> stack_copy;
  REQUIRE(reader.stack(0, &stack_copy) == SlotState::kComplete);
  CHECK(stack_copy->tid == 44);
  CHECK(stack_copy->frames[0].line == 3);

  writer.fact("seed", "17");
  Copy<Fact> fact;
  REQUIRE(reader.facts().head == 1);
  REQUIRE(reader.fact(0, &fact) == SlotState::kComplete);
  CHECK(text_of(reader, fact->key) == "seed");
  CHECK(text_of(reader, fact->value) == "17");
}

TEST_CASE("a call's progress is read with the times its flags promise") {
  Image image;
  Reader reader = image.reader();
  std::uint64_t n = image.call(3);
  CallProgress progress;
  REQUIRE(reader.call_progress(n, &progress) == SlotState::kComplete);
  CHECK(progress.flags == 0);
  CallRecord* record = image.writer().call(n);
  REQUIRE(record);
  record->return_ns.store(20);
  record->done_ns.store(30);
  record->flags.store(kCallReturned | kCallDone);
  REQUIRE(reader.call_progress(n, &progress) == SlotState::kComplete);
  CHECK(progress.return_ns == 20);
  CHECK(progress.done_ns == 30);
  CHECK(progress.flags == (kCallReturned | kCallDone));
  CHECK(progress.result == 3);
  CHECK(image.writer().call(n + 1) == nullptr);
}

TEST_CASE("equal strings have one id, long ones are cut, the empty one is none") {
  Image image;
  const Writer& writer = image.writer();
  Reader reader = image.reader();
  std::uint32_t first = writer.string("layers.0.attention");
  CHECK(first != 0);
  CHECK(writer.string("layers.0.attention") == first);
  CHECK(writer.string("layers.1.attention") != first);
  CHECK(writer.string("") == 0);
  CHECK(writer.string(nullptr) == 0);
  CHECK(text_of(reader, first) == "layers.0.attention");
  std::string giant(10000, 'x');
  CHECK(text_of(reader, writer.string(giant.c_str())) == std::string(kLongestString, 'x'));
  CHECK(text_of(reader, 0) == "<none>");
  CHECK(text_of(reader, reader.string_ids() + 1) == "<none>");
  CHECK(text_of(reader, UINT32_MAX) == "<none>");
}

TEST_CASE("a full arena drops strings and says so") {
  Image image;
  const Writer& writer = image.writer();
  Reader reader = image.reader();
  std::string base(4000, 'a');
  std::uint32_t last = 0;
  for (int i = 0; i < 400; ++i) last = writer.string((std::to_string(i) + base).c_str());
  CHECK(image.header().dropped_strings.load() > 0);
  CHECK(text_of(reader, last) == "<none>");
  CHECK(text_of(reader, writer.string(("0" + base).c_str())) == "0" + base);
  std::uint32_t small = writer.string("still fits");
  CHECK(text_of(reader, small) == "still fits");
}

TEST_CASE("a site is unfinished until it is resolved") {
  Image image;
  const Writer& writer = image.writer();
  Reader reader = image.reader();
  bool is_new = false;
  std::uint32_t id = writer.site(0x1234, &is_new);
  REQUIRE(id != 0);
  CHECK(is_new);
  Copy<SiteEntry> entry;
  std::uint32_t frames = 9;
  CHECK(reader.site(id, &entry, &frames) == SlotState::kUnfinished);
  CHECK(frames == 0);
  writer.site_entry(id).frames[0] = {writer.string("train.py"), writer.string("main"), 33};
  writer.resolve_site(id, 1);
  REQUIRE(reader.site(id, &entry, &frames) == SlotState::kComplete);
  CHECK(frames == 1);
  CHECK(entry->frames[0].line == 33);
  CHECK(writer.site(0x1234, &is_new) == id);
  CHECK_FALSE(is_new);
  CHECK(writer.site(0, &is_new) == 0);
  CHECK(reader.site(0, &entry, &frames) == SlotState::kGone);
  CHECK(reader.site(reader.site_ids() + 1, &entry, &frames) == SlotState::kGone);
}

TEST_CASE("the site table drops what finds no room") {
  Image image;
  bool is_new = false;
  std::uint32_t placed = 0;
  // All in one neighbourhood of the table.
  for (std::uint64_t i = 1; i <= 100; ++i) placed += image.writer().site(i * kSiteEntries, &is_new) != 0;
  CHECK(placed < 100);
  CHECK(image.header().dropped_sites.load() == 100 - placed);
}

TEST_CASE("communicators and threads") {
  Image image;
  const Writer& writer = image.writer();
  Reader reader = image.reader();
  std::uint32_t index = 99;
  CommEntry* comm = writer.open_comm(&index);
  REQUIRE(comm);
  CHECK(index == 0);
  comm->id = 5;
  Copy<CommEntry> copy;
  REQUIRE(reader.comm_count() == 1);
  CHECK_FALSE(reader.comm(0, &copy));
  comm->state.store(CommState::kCreating, std::memory_order_release);
  REQUIRE(reader.comm(0, &copy));
  CHECK(copy->id == 5);
  CHECK(copy->rank == -1);
  CHECK(copy->state.load() == CommState::kCreating);
  CHECK(copy->begin_ns > 0);
  for (std::uint32_t i = 1; i < kCommEntries; ++i) REQUIRE(writer.open_comm(&index));
  CHECK(writer.open_comm(&index) == nullptr);
  CHECK(image.header().dropped_comms.load() == 1);
  CHECK(reader.comm_count() == kCommEntries);
  CHECK_FALSE(reader.comm(kCommEntries, &copy));

  CHECK(writer.thread(101) == 0);
  CHECK(writer.thread(102) == 1);
  CHECK(writer.thread(101) == 0);
  Copy<ThreadEntry> thread;
  REQUIRE(reader.thread(1, &thread));
  CHECK(thread->tid.load() == 102);
  CHECK_FALSE(reader.thread(reader.thread_count(), &thread));
}

TEST_CASE("only the first ending counts") {
  Image image;
  image.writer().ending(EndingKind::kExit, 3);
  image.writer().ending(EndingKind::kSignal, 15);
  CHECK(image.header().ending.kind.load() == EndingKind::kExit);
  CHECK(image.header().ending.code == 3);
  CHECK(image.header().ending.time_ns > 0);
}
