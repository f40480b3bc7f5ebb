#include <thread>

#include "setup.h"

using namespace setup;

// The fake keeps its counts without locks; what is looked at here is flight memory.
TEST_CASE("threads create, use, group and destroy communicators of their own at the same time") {
  Process p;
  runtime_double::wake_up();
  constexpr int kThreads = 4, kLives = 20, kCalls = 30;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t] {
      for (int life = 0; life < kLives; ++life) {
        Comm comm = nullptr;
        UniqueId id = Process::unique_id(static_cast<char>(t * kLives + life));
        call_ncclCommInitRank(&comm, 4, id, t);
        for (int i = 0; i < kCalls; ++i) {
          all_reduce(comm);
          call_ncclGroupStart();
          send(comm, 1);
          recv(comm, 1);
          call_ncclGroupEnd();
        }
        call_ncclCommDestroy(comm);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(p.comms() == kThreads * kLives);
  CHECK(p.calls() == kThreads * kLives * (3 * kCalls + 1));
  for (std::uint32_t i = 0; i < p.comms(); ++i) {
    CHECK(p.comm(i).state.load() == flight::CommState::kDestroyed);
    CHECK(p.comm(i).calls.load() == kCalls);
  }
  std::vector<std::uint64_t> next(p.comms(), 1), next_send(p.comms(), 1);
  for (std::uint64_t n = 0; n < p.calls(); ++n) {
    const flight::CallRecord& call = p.call(n);
    REQUIRE(call.comm < p.comms());
    if (p.op(call) == "all_reduce") CHECK(call.number == next[call.comm]++);
    if (p.op(call) == "send") CHECK(call.number == next_send[call.comm]++);
    CHECK((p.flags(call) & ~flight::kCallInGroup) == flight::kCallReturned);
  }
}
