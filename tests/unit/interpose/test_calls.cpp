#include <cerrno>
#include <stdexcept>
#include <thread>

#include "setup.h"

using namespace setup;
using flight::DType;
using flight::ReduceOp;

TEST_CASE("a call is recorded with all that its arguments say, and reaches NCCL") {
  Process p;
  Comm comm = p.communicator(4, 1);
  REQUIRE(call_ncclReduce(nullptr, nullptr, Count{123}, DataType{9}, RedOp{2}, Root{3}, comm, stream(7)) == Result::kSuccess);
  CHECK(p.nccl->count("ncclReduce") == 1);
  const flight::CallRecord& call = p.last();
  CHECK(p.op(call) == "reduce");
  CHECK(call.number == 1);
  CHECK(call.count == 123);
  CHECK(call.stream == 7);
  CHECK(call.comm == 0);
  CHECK(call.root_or_peer == 3);
  CHECK(call.dtype == DType::kBF16);
  CHECK(call.reduce_op == ReduceOp::kMax);
  CHECK(call.group == 0);
  CHECK(call.step == flight::kNoStep);
  CHECK(call.enter_ns > 0);
  CHECK(call.return_ns.load() >= call.enter_ns);
  CHECK(p.flags(call) == flight::kCallReturned);
}

TEST_CASE("dtypes and reduce ops are normalised") {
  Process p;
  Comm comm = p.communicator();
  struct { int value; DType dtype; } dtypes[] = {{0, DType::kI8}, {1, DType::kU8}, {2, DType::kI32}, {3, DType::kU32},
      {4, DType::kI64}, {5, DType::kU64}, {6, DType::kF16}, {7, DType::kF32}, {8, DType::kF64}, {9, DType::kBF16},
      {10, DType::kF8E4M3}, {11, DType::kF8E5M2}, {12, DType::kUnknown}, {-1, DType::kUnknown}};
  for (auto [value, dtype] : dtypes) {
    call_ncclAllGather(nullptr, nullptr, Count{1}, DataType{value}, comm, stream(1));
    CHECK(p.last().dtype == dtype);
    CHECK(p.last().reduce_op == ReduceOp::kNone);
  }
  struct { int value; ReduceOp op; } ops[] = {{0, ReduceOp::kSum}, {1, ReduceOp::kProd}, {2, ReduceOp::kMax},
      {3, ReduceOp::kMin}, {4, ReduceOp::kAvg}, {5, ReduceOp::kPreMulSum}, {1 << 20, ReduceOp::kPreMulSum},
      {-3, ReduceOp::kUnknown}};
  for (auto [value, op] : ops) {
    call_ncclAllReduce(nullptr, nullptr, Count{1}, DataType{0}, RedOp{value}, comm, stream(1));
    CHECK(p.last().reduce_op == op);
  }
}

TEST_CASE("a record is visible while the call is inside NCCL, and its thread says where it is") {
  Process p;
  Comm comm = p.communicator();
  static Process* process;
  static int seen;
  process = &p;
  seen = 0;
  p.nccl->on_call([](const char* name) {
    if (std::string(name) != "ncclAllReduce") return;
    ++seen;
    const flight::CallRecord& call = process->last();
    CHECK(process->flags(call) == 0);
    CHECK(call.return_ns.load() == 0);
    const flight::ThreadEntry& thread = process->writer().thread_entry(call.thread);
    CHECK(thread.inside.load() == process->writer().string("ncclAllReduce"));
    CHECK(thread.inside_since_ns.load() == call.enter_ns);
  });
  all_reduce(comm);
  CHECK(seen == 1);
  const flight::ThreadEntry& thread = p.writer().thread_entry(p.last().thread);
  CHECK(thread.inside.load() == 0);
  CHECK((thread.flags.load() & flight::kThreadCalls));
}

TEST_CASE("collectives are counted on their communicator, accepted ones only") {
  Process p;
  Comm first = p.communicator(4, 1, 'a'), second = p.communicator(4, 1, 'b');
  all_reduce(first);
  all_reduce(second);
  all_reduce(first);
  CHECK(p.last().number == 2);
  p.nccl->returns("ncclAllReduce", 4);
  CHECK(all_reduce(first) == Result{4});
  CHECK(p.last().number == 3);
  CHECK(p.flags(p.last()) == (flight::kCallReturned | flight::kCallFailed));
  CHECK(p.last().result == 4);
  CHECK(p.comm(p.last().comm).calls.load() == 2);
  p.nccl->returns("ncclAllReduce", 7);  // in progress: accepted
  all_reduce(first);
  CHECK(p.last().number == 3);
  CHECK(p.flags(p.last()) == (flight::kCallReturned | flight::kCallProgressUnknown));
  all_reduce(second);
  CHECK(p.last().number == 2);
  CHECK(p.comm(0).calls.load() == 3);
  CHECK(p.comm(1).calls.load() == 2);
}

TEST_CASE("sends and receives are counted per peer and direction, apart from collectives") {
  Process p;
  Comm comm = p.communicator();
  auto number = [&](Result) { return p.last().number; };
  CHECK(number(send(comm, 2)) == 1);
  CHECK(number(send(comm, 2)) == 2);
  CHECK(number(recv(comm, 2)) == 1);
  CHECK(number(send(comm, 3)) == 1);
  CHECK(number(all_reduce(comm)) == 1);
  p.nccl->returns("ncclSend", 4);
  CHECK(number(send(comm, 2)) == 3);
  p.nccl->returns("ncclSend", 0);
  CHECK(number(send(comm, 2)) == 3);
  CHECK(p.last().root_or_peer == 2);
  CHECK(p.comm(0).calls.load() == 1);
}

TEST_CASE("one-sided calls are recorded without a number") {
  Process p;
  Comm comm = p.communicator();
  call_ncclSignal(Peer{2}, 0, 0, 0, comm, stream(1));
  CHECK(p.op(p.last()) == "signal");
  CHECK(p.last().number == 0);
  CHECK(p.last().root_or_peer == 2);
}

TEST_CASE("a call that NCCL makes to its own public function is not a second call") {
  Process p;
  Comm comm = p.communicator();
  std::uint64_t before = p.calls();
  call_ncclBcast(nullptr, Count{8}, DataType{7}, Root{1}, comm, stream(1));
  CHECK(p.nccl->count("ncclBcast") == 1);
  CHECK(p.nccl->count("ncclBroadcast") == 1);
  CHECK(p.calls() == before + 1);
  CHECK(p.op(p.last()) == "broadcast");
  CHECK(p.last().root_or_peer == 1);
}

TEST_CASE("an exception passes through a wrapper, and later calls are recorded") {
  Process p;
  Comm comm = p.communicator();
  p.nccl->on_call([](const char*) { throw std::runtime_error("thrown by the fake"); });
  for (int i = 0; i < 2; ++i) CHECK_THROWS_AS(all_reduce(comm), std::runtime_error);
  p.nccl->on_call(nullptr);
  std::uint64_t before = p.calls();
  all_reduce(comm);
  CHECK(p.calls() == before + 1);
  CHECK(p.flags(p.last()) == flight::kCallReturned);
}

TEST_CASE("errno is the host's on the way in and NCCL's on the way out") {
  Process p;
  Comm comm = p.communicator();
  errno = 17;
  all_reduce(comm);
  CHECK(errno == 17);
  CHECK(p.nccl->errno_seen() == 17);
  p.nccl->sets_errno("ncclAllReduce");
  all_reduce(comm);
  CHECK(errno == 42);
  errno = 0;
}

TEST_CASE("marks lie around a call; none on a capturing stream or after a failure") {
  Process p;
  Comm comm = p.communicator();
  auto& marks = runtime_double::state.marks;
  all_reduce(comm, 10, 5);
  REQUIRE(marks.size() == 2);
  std::uint64_t n = p.calls() - 1;
  for (const auto& placed : marks) {
    CHECK(placed.span.first == n);
    CHECK(placed.span.last == n);
    CHECK(placed.span.group == 0);
    CHECK(placed.span.stream == stream(5));
    CHECK(placed.mark == 1);
  }
  CHECK(marks[0].what == "start");
  CHECK(marks[1].what == "end");

  marks.clear();
  runtime_double::state.capturing.insert(stream(5));
  all_reduce(comm, 10, 5);
  CHECK(marks.empty());
  CHECK((p.flags(p.last()) & flight::kCallCaptured));

  p.nccl->returns("ncclAllReduce", 4);
  all_reduce(comm, 10, 6);
  REQUIRE(marks.size() == 2);
  CHECK(marks[1].what == "cancel");

  marks.clear();
  call_ncclCommFinalize(comm);
  CHECK(marks.empty());
}

TEST_CASE("nothing is recorded while the process is inert or disabled, and everything works") {
  Process p;
  runtime_double::state.wakes_up = false;
  Comm comm = nullptr;
  call_ncclCommInitRank(&comm, 4, Process::unique_id('a'), 0);
  CHECK(comm);
  call_ncclGroupStart();
  CHECK(all_reduce(comm) == Result::kSuccess);
  call_ncclGroupEnd();
  CHECK(call_ncclCommDestroy(comm) == Result::kSuccess);
  CHECK(p.nccl->count("ncclAllReduce") == 1);
  CHECK_FALSE(runtime::recorder());

  runtime::disabled_slot = true;
  runtime_double::state.wakes.clear();
  call_ncclCommInitRank(&comm, 4, Process::unique_id('a'), 0);
  CHECK(runtime_double::state.wakes.empty());
}

TEST_CASE("every thread has its entry and its own position") {
  Process p;
  Comm comm = p.communicator();
  all_reduce(comm);
  std::uint32_t mine = p.last().thread;
  std::thread([&] { all_reduce(comm); }).join();
  CHECK(p.last().thread != mine);
  CHECK(p.last().number == 2);
}

TEST_CASE("a process that wakes again counts from 1 and knows none of the old communicators") {
  Process p;
  Comm comm = p.communicator(4, 1, 'a');
  all_reduce(comm);
  send(comm, 2);
  runtime_double::fall_asleep();
  Comm other = p.communicator(4, 1, 'b');
  CHECK(p.comms() == 1);
  all_reduce(other);
  CHECK(p.last().number == 1);
  send(other, 2);
  CHECK(p.last().number == 1);
  CHECK(p.writer().thread_entry(p.last().thread).tid.load() != 0);
}
