// Life and death of communicators.
#include <unistd.h>

#include <csignal>
#include <string>

#include "tests/unit/catch.h"
#include "tests/unit/simnccl/ranks.h"

using namespace simgpu::nccl;

namespace {

int size_of(Comm comm) {
  int size = -1;
  ncclCommCount(comm, &size);
  return size;
}

int rank_in(Comm comm) {
  int rank = -1;
  ncclCommUserRank(comm, &rank);
  return rank;
}

int sum_of_ranks(Rank& r, Comm comm) {
  const Stream stream = Rank::stream();
  const Buffer buffer = device_copy(std::vector<int>{r.rank});
  SUCCESS(ncclAllReduce(buffer, buffer, 1, kInt32, kSum, comm, stream));
  EXPECT(Rank::done(stream));
  return host_copy<int>(buffer, 1)[0];
}

size_t free_bytes() {
  size_t free_now = 0;
  size_t total = 0;
  cudaMemGetInfo(&free_now, &total);
  return free_now;
}

}  // namespace

TEST_CASE("a communicator knows its members, and bad arguments are refused at once", "[communicators]") {
  CHECK(all_well(
      run_ranks(2,
                [](Rank& r) {
                  const Comm comm = r.comm();
                  const Stream stream = Rank::stream();
                  const Buffer b(64);
                  int device = -1;
                  SUCCESS(ncclCommCuDevice(comm, &device));
                  EXPECT(size_of(comm) == 2 && rank_in(comm) == r.rank && device == r.rank);
                  EXPECT(ncclAllReduce(b, b, 1, kInt32, kSum, nullptr, stream) == kInvalidArgument);
                  EXPECT(ncclAllReduce(b, b, 1, kInt32, kSum, &device, stream) == kInvalidArgument);
                  EXPECT(ncclAllReduce(b, b, 1, -1, kSum, comm, stream) == kInvalidArgument);
                  EXPECT(ncclAllReduce(b, b, 1, kInt32, -1, comm, stream) == kInvalidArgument);
                  EXPECT(ncclAllReduce(b, b, 1, kInt32, 99, comm, stream) == kInvalidArgument);
                  EXPECT(ncclAllReduce(nullptr, b, 1, kInt32, kSum, comm, stream) == kInvalidArgument);
                  EXPECT(ncclReduce(b, b, 1, kInt32, kSum, -1, comm, stream) == kInvalidArgument);
                  EXPECT(ncclSend(b, 1, kInt32, 2, comm, stream) == kInvalidArgument);
                  EXPECT(std::string(ncclGetLastError(comm)).find("peer 2") != std::string::npos);
                  EXPECT(ncclCommCount(nullptr, &device) == kInvalidArgument);
                  EXPECT(ncclAllReduce(b, b, 1, kInt32, kSum, comm, &device) == kUnhandledCudaError);
                  EXPECT(sum_of_ranks(r, comm) == 1);
                  int error = -1;
                  SUCCESS(ncclCommGetAsyncError(comm, &error));
                  EXPECT(error == kOk);
                  SUCCESS(ncclCommFinalize(comm));
                  EXPECT(ncclCommFinalize(comm) == kInvalidArgument);
                  SUCCESS(ncclCommDestroy(comm));
                  EXPECT(ncclCommDestroy(comm) == kInvalidArgument);
                  SUCCESS(ncclCommDestroy(nullptr));
                  SUCCESS(ncclCommAbort(nullptr));
                  SUCCESS(ncclCommFinalize(nullptr));
                  UniqueId id{};
                  Comm none;
                  EXPECT(ncclCommInitRank(&none, 2, id, 0) == kInvalidArgument);
                  EXPECT(ncclCommInitRank(&none, 2, r.id(1), 2) == kInvalidArgument);
                  int version = 0;
                  SUCCESS(ncclGetVersion(&version));
                  EXPECT(version == 23007);
                  EXPECT(std::string(ncclGetErrorString(kInvalidUsage)).find("invalid usage") == 0);
                  EXPECT(ncclCommWindowRegister(comm, b, 64, nullptr, 0) == kInvalidUsage);
                },
                {"SIMGPU_QUIET=1"})));
}

TEST_CASE("split by colour and key", "[communicators]") {
  CHECK(all_well(run_ranks(4, [](Rank& r) {
    const Comm world = r.comm();
    Comm half = nullptr;
    SUCCESS(ncclCommSplit(world, r.rank % 2, -r.rank, &half, nullptr));
    EXPECT(size_of(half) == 2);
    EXPECT(rank_in(half) == (r.rank < 2 ? 1 : 0));
    EXPECT(sum_of_ranks(r, half) == (r.rank % 2 == 0 ? 2 : 4));
    Comm alone = nullptr;
    SUCCESS(ncclCommSplit(half, rank_in(half), 0, &alone, nullptr));
    EXPECT(size_of(alone) == 1 && sum_of_ranks(r, alone) == r.rank);

    SUCCESS(ncclGroupStart());
    Comm first = nullptr;
    Comm second = nullptr;
    SUCCESS(ncclCommSplit(world, 0, r.rank, &first, nullptr));
    SUCCESS(ncclCommSplit(world, r.rank / 2, r.rank, &second, nullptr));
    SUCCESS(ncclGroupEnd());
    EXPECT(size_of(first) == 4 && size_of(second) == 2);
    EXPECT(sum_of_ranks(r, second) == (r.rank < 2 ? 1 : 5));
    for (Comm comm : {alone, first, second, half, world}) SUCCESS(ncclCommDestroy(comm));
  })));
}

TEST_CASE("split is collective also for a rank without a colour", "[communicators]") {
  CHECK(all_well(run_ranks(3, [](Rank& r) {
    const Comm world = r.comm();
    Comm child = &r;
    if (r.rank == 1) {
      r.await(0);
      Rank::pause(100);
      EXPECT(r.board.flags[1].load() == 0);  // nobody is through yet
    }
    if (r.rank == 2) r.set(0);
    SUCCESS(ncclCommSplit(world, r.rank == 2 ? -1 : 7, 0, &child, nullptr));
    r.set(1);
    if (r.rank == 2)
      EXPECT(child == nullptr);
    else
      EXPECT(size_of(child) == 2 && sum_of_ranks(r, child) == 1);
  })));
}

TEST_CASE("shrink leaves out members that do not take part, also when calls are stuck", "[communicators]") {
  CHECK(all_well(run_ranks(4, [](Rank& r) {
    const Comm world = r.comm();
    const int excluded = 1;
    if (r.rank == 1) return r.await(0, 3);
    const Stream stream = Rank::stream();
    const Buffer buffer(64);
    SUCCESS(ncclAllReduce(buffer, buffer, 1, kInt32, kSum, world, stream));
    EXPECT(!Rank::done(stream, 100));
    Comm smaller = nullptr;
    SUCCESS(ncclCommShrink(world, &excluded, 1, &smaller, nullptr, kShrinkAbort));
    EXPECT(Rank::done(stream));
    EXPECT(size_of(smaller) == 3);
    EXPECT(rank_in(smaller) == (r.rank == 0 ? 0 : r.rank - 1));
    EXPECT(sum_of_ranks(r, smaller) == 5);
    r.set(0);
  })));
}

TEST_CASE("revoke stops what runs and refuses what comes; split still works", "[communicators]") {
  CHECK(all_well(run_ranks(2, [](Rank& r) {
    const Comm world = r.comm();
    const Stream stream = Rank::stream();
    const Buffer buffer(64);
    SUCCESS(ncclAllReduce(buffer, buffer, 1 + r.rank, kInt32, kSum, world, stream));
    EXPECT(!Rank::done(stream, 100));
    EXPECT(ncclCommRevoke(world, 1) == kInvalidArgument);
    SUCCESS(ncclCommRevoke(world, 0));
    EXPECT(Rank::done(stream, 2000));
    EXPECT(ncclAllReduce(buffer, buffer, 1, kInt32, kSum, world, stream) == kInvalidUsage);
    Comm again = nullptr;
    SUCCESS(ncclCommSplit(world, 0, r.rank, &again, nullptr));
    EXPECT(sum_of_ranks(r, again) == 1);
    SUCCESS(ncclCommDestroy(again));
    SUCCESS(ncclCommDestroy(world));
  })));
}

TEST_CASE("destroy returns when all members have called it", "[communicators]") {
  CHECK(all_well(run_ranks(3, [](Rank& r) {
    const Comm comm = r.comm();
    if (r.rank == 2) {
      Rank::pause(300);
      EXPECT(r.board.flags[0].load() == 0);
    }
    SUCCESS(ncclCommDestroy(comm));
    r.set(0);
  })));
}

TEST_CASE("one process may have several members", "[communicators]") {
  CHECK(all_well(run_ranks(1, [](Rank& r) {
    Comm comms[3];
    const int devices[] = {4, 2, 0};
    SUCCESS(ncclCommInitAll(comms, 3, devices));
    Stream streams[3];
    std::vector<Buffer> buffers;
    SUCCESS(ncclGroupStart());
    for (int i = 0; i < 3; ++i) {
      int device = -1;
      SUCCESS(ncclCommCuDevice(comms[i], &device));
      EXPECT(device == devices[i]);
      cudaSetDevice(device);
      streams[i] = Rank::stream();
      buffers.push_back(device_copy(std::vector<int>{i + 1}));
      SUCCESS(ncclAllReduce(buffers[i], buffers[i], 1, kInt32, kSum, comms[i], streams[i]));
    }
    SUCCESS(ncclGroupEnd());
    for (int i = 0; i < 3; ++i) {
      EXPECT(Rank::done(streams[i]));
      EXPECT(host_copy<int>(buffers[i], 1)[0] == 6);
    }
    for (Comm comm : comms) SUCCESS(ncclCommDestroy(comm));
    const int twice[] = {1, 1};
    EXPECT(ncclCommInitAll(comms, 2, twice) == kInvalidUsage);
  })));
}

TEST_CASE("two members on one device are refused", "[communicators]") {
  CHECK(all_well(run_ranks(2, [](Rank& r) {
    cudaSetDevice(3);
    Comm comm = &r;
    EXPECT(ncclCommInitRank(&comm, 2, r.id(0), r.rank) == kInvalidUsage);
    EXPECT(comm == nullptr);
  })));
}

TEST_CASE("a communicator takes device memory while it lives", "[communicators]") {
  const std::vector<int> statuses =
      run_ranks(2,
                [](Rank& r) {
                  const size_t before = free_bytes();
                  const Comm comm = r.comm();
                  EXPECT(free_bytes() == before - (100 << 20));
                  SUCCESS(ncclCommDestroy(comm));
                  EXPECT(free_bytes() == before);

                  const UniqueId id = r.id(1);
                  Comm second = nullptr;
                  if (r.rank == 1) {
                    const Buffer rest(free_bytes() - (99 << 20));
                    EXPECT(ncclCommInitRank(&second, 2, id, 1) == kUnhandledCudaError);
                    EXPECT(second == nullptr);
                    return;
                  }
                  alarm(1);  // this one stays inside
                  ncclCommInitRank(&second, 2, id, 0);
                },
                {"SIMGPU_COMM_MB=100"});
  CHECK(statuses == std::vector<int>{-SIGALRM, 0});
}

TEST_CASE("a communicator that does not block is made behind the caller's back", "[communicators]") {
  CHECK(all_well(run_ranks(2, [](Rank& r) {
    struct {
      size_t size = sizeof(*this);
      unsigned magic = kConfigMagic;
      unsigned version = kVersion;
      int blocking = 0;
      int others[32] = {};
    } config;
    const UniqueId id = r.id(0);
    if (r.rank == 1) r.await(0);
    Comm comm = nullptr;
    EXPECT(ncclCommInitRankConfig(&comm, 2, id, r.rank, &config) == kInProgress);
    EXPECT(comm != nullptr);
    int state = kInProgress;
    if (r.rank == 0) {
      Rank::pause(100);
      SUCCESS(ncclCommGetAsyncError(comm, &state));
      EXPECT(state == kInProgress);
      const Buffer buffer(64);
      EXPECT(ncclAllReduce(buffer, buffer, 1, kInt32, kSum, comm, nullptr) == kInvalidArgument);
      r.set(0);
    }
    while (state == kInProgress || state == -1) SUCCESS(ncclCommGetAsyncError(comm, &state));
    EXPECT(state == kOk);
    EXPECT(sum_of_ranks(r, comm) == 1);
    config.magic = 0;
    EXPECT(ncclCommInitRankConfig(&comm, 2, id, r.rank, &config) == kInvalidArgument);
  })));
}

TEST_CASE("a communicator that never gets complete can be aborted if it does not block", "[communicators]") {
  CHECK(all_well(run_ranks(1, [](Rank& r) {
    struct {
      size_t size = sizeof(*this);
      unsigned magic = kConfigMagic;
      unsigned version = kVersion;
      int blocking = 0;
    } config;
    Comm comm = nullptr;
    EXPECT(ncclCommInitRankConfig(&comm, 2, r.id(0), 0, &config) == kInProgress);
    Rank::pause(50);
    const size_t before = free_bytes();
    SUCCESS(ncclCommAbort(comm));
    EXPECT(free_bytes() > before);
  })));
}

TEST_CASE("memory of NCCL's own is device memory", "[communicators]") {
  CHECK(all_well(run_ranks(1, [](Rank& r) {
    const size_t before = free_bytes();
    void* memory = nullptr;
    SUCCESS(ncclMemAlloc(&memory, 4 << 20));
    EXPECT(free_bytes() <= before - (4 << 20));
    SUCCESS(ncclMemFree(memory));
    EXPECT(free_bytes() == before);
    EXPECT(ncclMemAlloc(nullptr, 1) == kInvalidArgument);
  })));
}

TEST_CASE("profiler names are the same functions", "[communicators]") {
  CHECK(all_well(run_ranks(1, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream stream = Rank::stream();
    const Buffer from = device_copy(std::vector<int>{3});
    const Buffer to(sizeof(int));
    SUCCESS(pncclAllReduce(from, to, 1, kInt32, kSum, comm, stream));
    EXPECT(Rank::done(stream));
    EXPECT(host_copy<int>(to, 1)[0] == 3);
  })));
}
