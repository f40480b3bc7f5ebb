#include <thread>

#include "setup.h"

using namespace setup;

namespace {

constexpr std::uint32_t kPending = flight::kCallReturned | flight::kCallInGroup | flight::kCallGroupPending;
constexpr std::uint32_t kCommitted = flight::kCallReturned | flight::kCallInGroup;

}  // namespace

TEST_CASE("calls of a group are pending until the outermost end") {
  Process p;
  Comm comm = p.communicator();
  std::uint64_t first = p.calls();
  call_ncclGroupStart();
  all_reduce(comm);
  call_ncclGroupStart();
  send(comm, 1);
  call_ncclGroupEnd();
  CHECK(p.flags(p.call(first)) == kPending);
  CHECK(p.flags(p.call(first + 1)) == kPending);
  const flight::ThreadEntry& thread = p.writer().thread_entry(p.last().thread);
  CHECK(thread.group_depth.load() == 1);
  call_ncclGroupEnd();
  CHECK(p.flags(p.call(first)) == kCommitted);
  CHECK(p.flags(p.call(first + 1)) == kCommitted);
  CHECK(thread.group_depth.load() == 0);
  CHECK(p.call(first).group != 0);
  CHECK(p.call(first).group == p.call(first + 1).group);
  CHECK(p.call(first).number == 1);

  call_ncclGroupStart();
  all_reduce(comm);
  call_ncclGroupEnd();
  CHECK(p.last().group != p.call(first).group);
  CHECK(p.last().number == 2);
}

TEST_CASE("a failed group end takes its calls back") {
  Process p;
  Comm comm = p.communicator(), other = p.communicator(4, 1, 'b');
  all_reduce(comm);
  call_ncclGroupStart();
  all_reduce(comm);
  all_reduce(comm);
  CHECK(p.last().number == 3);
  send(comm, 2);
  all_reduce(other);
  p.nccl->returns("ncclAllReduce", 4);
  all_reduce(comm);  // rejected at once: given back once
  p.nccl->returns("ncclAllReduce", 0);
  p.nccl->returns("ncclGroupEnd", 5);
  std::uint64_t last = p.calls();
  CHECK(call_ncclGroupEnd() == Result{5});
  for (std::uint64_t n = last - 5; n < last; ++n) {
    CHECK((p.flags(p.call(n)) & flight::kCallFailed));
    CHECK_FALSE((p.flags(p.call(n)) & flight::kCallGroupPending));
    CHECK(p.call(n).result == (n == last - 1 ? 4 : 5));
  }
  CHECK(p.comm(0).calls.load() == 1);
  CHECK(p.comm(1).calls.load() == 0);
  p.nccl->returns("ncclGroupEnd", 0);
  all_reduce(comm);
  CHECK(p.last().number == 2);
  send(comm, 2);
  CHECK(p.last().number == 1);
}

TEST_CASE("a group end in progress commits its calls, whose progress is unknown") {
  Process p;
  Comm comm = p.communicator();
  call_ncclGroupStart();
  all_reduce(comm);
  p.nccl->returns("ncclGroupEnd", 7);
  call_ncclGroupEnd();
  CHECK(p.flags(p.last()) == (kCommitted | flight::kCallProgressUnknown));
  CHECK(p.comm(0).calls.load() == 1);
  CHECK(runtime_double::state.marks.back().what == "cancel");
}

TEST_CASE("the marks of a group lie around its outermost end, one pair a stream") {
  Process p;
  Comm comm = p.communicator();
  runtime_double::state.capturing.insert(stream(9));
  static std::size_t marks_inside;
  p.nccl->on_call([](const char* name) {
    if (std::string(name) == "ncclGroupEnd") marks_inside = runtime_double::state.marks.size();
  });
  call_ncclGroupStart();
  std::uint64_t first = p.calls();
  all_reduce(comm, 10, 1);
  all_reduce(comm, 10, 2);
  all_reduce(comm, 10, 9);
  all_reduce(comm, 10, 1);
  auto& marks = runtime_double::state.marks;
  CHECK(marks.empty());
  call_ncclGroupEnd();
  CHECK(marks_inside == 2);
  REQUIRE(marks.size() == 4);
  for (const auto& placed : marks) {
    CHECK(placed.span.group == p.last().group);
    bool one = placed.span.stream == stream(1);
    CHECK(placed.span.first == (one ? first : first + 1));
    CHECK(placed.span.last == (one ? first + 3 : first + 1));
  }
  CHECK(marks[2].what == "end");
  CHECK(marks[3].what == "end");
}

TEST_CASE("more streams in a group than there are marks for: progress unknown") {
  Process p;
  Comm comm = p.communicator();
  call_ncclGroupStart();
  std::uint64_t first = p.calls();
  for (std::uintptr_t i = 1; i <= 20; ++i) all_reduce(comm, 10, i);
  call_ncclGroupEnd();
  CHECK(runtime_double::state.marks.size() == 32);
  int unknown = 0;
  for (std::uint64_t n = first; n < first + 20; ++n) unknown += (p.flags(p.call(n)) & flight::kCallProgressUnknown) != 0;
  CHECK(unknown == 4);
}

TEST_CASE("groups of two threads do not touch each other") {
  Process p;
  Comm comm = p.communicator(), other = p.communicator(4, 1, 'b');
  call_ncclGroupStart();
  all_reduce(comm);
  std::uint64_t mine = p.calls() - 1;
  std::thread([&] {
    all_reduce(other);
    CHECK_FALSE((p.flags(p.last()) & flight::kCallInGroup));
    call_ncclGroupStart();
    all_reduce(other);
    p.nccl->returns("ncclGroupEnd", 5);
    call_ncclGroupEnd();
    p.nccl->returns("ncclGroupEnd", 0);
  }).join();
  CHECK(p.flags(p.call(mine)) == kPending);
  CHECK(p.comm(1).calls.load() == 1);
  call_ncclGroupEnd();
  CHECK(p.flags(p.call(mine)) == kCommitted);
  CHECK(p.comm(0).calls.load() == 1);
}

TEST_CASE("a simulated group end issues nothing") {
  Process p;
  Comm comm = p.communicator();
  call_ncclGroupStart();
  all_reduce(comm);
  call_ncclGroupSimulateEnd(nullptr);
  CHECK((p.flags(p.last()) & flight::kCallFailed));
  CHECK(p.comm(0).calls.load() == 0);
  all_reduce(comm);
  CHECK(p.last().group == 0);
  CHECK(p.last().number == 1);
}

TEST_CASE("an end without start, and a start that fails, leave no group open") {
  Process p;
  Comm comm = p.communicator();
  p.nccl->returns("ncclGroupEnd", 5);
  CHECK(call_ncclGroupEnd() == Result{5});
  p.nccl->returns("ncclGroupStart", 5);
  CHECK(call_ncclGroupStart() == Result{5});
  all_reduce(comm);
  CHECK(p.last().group == 0);
}

TEST_CASE("a group that began while the process was inert is a group") {
  Process p;
  call_ncclGroupStart();
  Comm comm = nullptr;
  call_ncclCommInitRank(&comm, 4, Process::unique_id('a'), 1);
  CHECK_FALSE(comm);
  CHECK(p.comm(0).state.load() == flight::CommState::kCreating);
  call_ncclGroupEnd();
  REQUIRE(comm);
  CHECK(p.comm(0).state.load() == flight::CommState::kReady);
  CHECK(p.comm(0).handle == reinterpret_cast<std::uint64_t>(comm));
  all_reduce(comm);
  CHECK(p.last().comm == 0);
  CHECK(p.last().group == 0);
}
