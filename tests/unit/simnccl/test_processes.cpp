// Processes and threads around a communicator.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "tests/unit/catch.h"
#include "tests/unit/simnccl/ranks.h"

using namespace simgpu::nccl;

TEST_CASE("members may be threads of one process", "[processes]") {
  CHECK(all_well(run_ranks(1, [](Rank& r) {
    constexpr int kMembers = 4;
    UniqueId id;
    SUCCESS(ncclGetUniqueId(&id));
    std::vector<int> sums(kMembers, 0);
    std::vector<std::thread> threads;
    for (int member = 0; member < kMembers; ++member) {
      threads.emplace_back([&, member] {
        cudaSetDevice(member);
        Comm comm = nullptr;
        if (ncclCommInitRank(&comm, kMembers, id, member) != kOk) return;
        const Stream stream = Rank::stream();
        const Buffer buffer = device_copy(std::vector<int>{member});
        for (int i = 0; i < 50; ++i) ncclAllReduce(buffer, buffer, 1, kInt32, kMax, comm, stream);
        ncclAllReduce(buffer, buffer, 1, kInt32, kSum, comm, stream);
        if (Rank::done(stream)) sums[member] = host_copy<int>(buffer, 1)[0];
        ncclCommDestroy(comm);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT(sums == std::vector<int>(kMembers, kMembers * (kMembers - 1)));
  })));
}

TEST_CASE("a stopped rank holds up the others until it goes on", "[processes]") {
  CHECK(all_well(run_ranks(2, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream stream = Rank::stream();
    const Buffer buffer = device_copy(std::vector<int>{1});
    if (r.rank == 0) {
      r.board.flags[1].store(getpid());
      r.await(0);
      for (int i = 0; i < 10; ++i) SUCCESS(ncclAllReduce(buffer, buffer, 1, kInt32, kSum, comm, stream));
      EXPECT(Rank::done(stream));
      return;
    }
    r.await(1);
    const pid_t other = r.board.flags[1].load();
    kill(other, SIGSTOP);
    r.set(0);
    for (int i = 0; i < 10; ++i) SUCCESS(ncclAllReduce(buffer, buffer, 1, kInt32, kSum, comm, stream));
    EXPECT(!Rank::done(stream, 300));
    kill(other, SIGCONT);
    EXPECT(Rank::done(stream));
    EXPECT(host_copy<int>(buffer, 1)[0] == 1024);
  })));
}

TEST_CASE("a forked child does not disturb its parent, and cannot use NCCL", "[processes]") {
  CHECK(all_well(run_ranks(2, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream stream = Rank::stream();
    const Buffer buffer = device_copy(std::vector<int>{1});
    SUCCESS(ncclAllReduce(buffer, buffer, 1, kInt32, kSum, comm, stream));
    const UniqueId id = r.id(1);
    const pid_t child = fork();
    if (child == 0) {
      Comm none = nullptr;
      const bool refused =
          ncclCommInitRank(&none, 1, id, 0) == kUnhandledCudaError &&
          ncclAllReduce(buffer, buffer, 1, kInt32, kSum, comm, stream) == kUnhandledCudaError;
      _exit(refused ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT(status == 0);
    SUCCESS(ncclAllReduce(buffer, buffer, 1, kInt32, kSum, comm, stream));
    EXPECT(Rank::done(stream));
    EXPECT(host_copy<int>(buffer, 1)[0] == 4);
    SUCCESS(ncclCommDestroy(comm));
  })));
}
