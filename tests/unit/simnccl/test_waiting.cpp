// Which calls complete, and which never do.
#include <dirent.h>
#include <unistd.h>

#include <csignal>
#include <set>

#include "tests/unit/catch.h"
#include "tests/unit/simnccl/ranks.h"

using namespace simgpu::nccl;

namespace {

constexpr int kAWhile = 300;  // milliseconds in which a call that can complete has completed

struct Shape {
  const char* what;
  void (*call)(Rank& r, const Buffer& buffer, Comm comm, Stream stream);
};

const Shape kMismatches[] = {
    {"op",
     [](Rank& r, const Buffer& b, Comm comm, Stream stream) {
       if (r.rank == 0)
         SUCCESS(ncclAllReduce(b, b, 4, kFloat32, kSum, comm, stream));
       else
         SUCCESS(ncclReduceScatter(b, b, 4, kFloat32, kSum, comm, stream));
     }},
    {"count", [](Rank& r, const Buffer& b, Comm comm,
                 Stream stream) { SUCCESS(ncclAllGather(b, b, 4 + r.rank, kFloat32, comm, stream)); }},
    {"type",
     [](Rank& r, const Buffer& b, Comm comm, Stream stream) {
       SUCCESS(ncclAllReduce(b, b, 4, r.rank == 0 ? kFloat32 : kInt32, kSum, comm, stream));
     }},
    {"reduce operation",
     [](Rank& r, const Buffer& b, Comm comm, Stream stream) {
       SUCCESS(ncclAllReduce(b, b, 4, kFloat32, r.rank == 0 ? kSum : kMax, comm, stream));
     }},
};

}  // namespace

TEST_CASE("calls that do not agree never complete until they are aborted", "[waiting]") {
  for (const Shape& shape : kMismatches) {
    INFO(shape.what);
    CHECK(all_well(run_ranks(2, [&](Rank& r) {
      const Comm comm = r.comm();
      const Stream stream = Rank::stream();
      const Buffer buffer(4096);
      SUCCESS(ncclAllReduce(buffer, buffer, 4, kFloat32, kSum, comm, stream));
      EXPECT(Rank::done(stream));
      shape.call(r, buffer, comm, stream);
      EXPECT(!Rank::done(stream, kAWhile));
      SUCCESS(ncclCommAbort(comm));
      EXPECT(Rank::done(stream, 2000));
    })));
  }
}

TEST_CASE("roots that do not agree: the next call that needs all members never completes", "[waiting]") {
  CHECK(all_well(run_ranks(3, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream stream = Rank::stream();
    const Buffer buffer(4096);
    SUCCESS(ncclBroadcast(buffer, buffer, 4, kFloat32, r.rank == 2 ? 2 : 0, comm, stream));
    SUCCESS(ncclAllReduce(buffer, buffer, 4, kFloat32, kSum, comm, stream));
    EXPECT(!Rank::done(stream, kAWhile));
    r.set(0);
    r.await(0, 3);
  })));
}

TEST_CASE("a member that does not come holds up the others", "[waiting]") {
  CHECK(all_well(run_ranks(3, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream stream = Rank::stream();
    const Buffer buffer(4096);
    if (r.rank != 1) {
      SUCCESS(ncclAllReduce(buffer, buffer, 4, kFloat32, kSum, comm, stream));
      EXPECT(!Rank::done(stream, kAWhile));
    }
    r.set(0);
    r.await(0, 3);
    if (r.rank == 1) SUCCESS(ncclAllReduce(buffer, buffer, 4, kFloat32, kSum, comm, stream));
    EXPECT(Rank::done(stream));
  })));
}

TEST_CASE("the root of a broadcast and the leaves of a reduce finish early", "[waiting]") {
  CHECK(all_well(run_ranks(3, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream stream = Rank::stream();
    const Buffer broadcast = device_copy(std::vector<int>(1000, r.rank == 1 ? 7 : 0));
    const Buffer give = device_copy(std::vector<int>(1000, r.rank + 1));
    const Buffer sum(4000);
    if (r.rank == 1) {
      SUCCESS(ncclBroadcast(broadcast, broadcast, 1000, kInt32, 1, comm, stream));
      SUCCESS(ncclReduce(give, nullptr, 1000, kInt32, kSum, 0, comm, stream));
      EXPECT(Rank::done(stream, 5000));
      r.set(0);
      return r.await(1, 2);
    }
    r.await(0);
    SUCCESS(ncclBroadcast(nullptr, broadcast, 1000, kInt32, 1, comm, stream));
    SUCCESS(ncclReduce(give, r.rank == 0 ? sum.get() : nullptr, 1000, kInt32, kSum, 0, comm, stream));
    EXPECT(Rank::done(stream));
    EXPECT(host_copy<int>(broadcast, 1000) == std::vector<int>(1000, 7));
    if (r.rank == 0) EXPECT(host_copy<int>(sum, 1000) == std::vector<int>(1000, 6));
    r.set(1);
  })));
}

TEST_CASE("a root is not ahead for ever", "[waiting]") {
  CHECK(all_well(run_ranks(2, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream stream = Rank::stream();
    const Buffer buffer(64);
    if (r.rank == 1) {
      r.await(0);
      for (int i = 0; i < 100; ++i) SUCCESS(ncclBcast(buffer, 4, kInt32, 0, comm, stream));
      EXPECT(Rank::done(stream));
      return r.set(1);
    }
    for (int i = 0; i < 100; ++i) SUCCESS(ncclBcast(buffer, 4, kInt32, 0, comm, stream));
    EXPECT(!Rank::done(stream, kAWhile));
    r.set(0);
    EXPECT(Rank::done(stream));
    r.await(1);
  })));
}

TEST_CASE("a send of 256 KiB completes without its receive, a larger one does not", "[waiting]") {
  CHECK(all_well(run_ranks(2, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream stream = Rank::stream();
    const size_t small = 256 << 10;
    const size_t large = small + 1;
    const Buffer first = device_copy(std::vector<uint8_t>(large, r.rank == 0 ? 1 : 0));
    const Buffer second = device_copy(std::vector<uint8_t>(large, r.rank == 0 ? 2 : 0));
    if (r.rank == 0) {
      SUCCESS(ncclSend(first, small, kUint8, 1, comm, stream));
      EXPECT(Rank::done(stream, 5000));
      SUCCESS(ncclSend(second, large, kUint8, 1, comm, stream));
      EXPECT(!Rank::done(stream, kAWhile));
      r.set(0);
      EXPECT(Rank::done(stream));
      return r.await(1);
    }
    r.await(0);
    SUCCESS(ncclRecv(first, small, kUint8, 0, comm, stream));
    SUCCESS(ncclRecv(second, large, kUint8, 0, comm, stream));
    EXPECT(Rank::done(stream));
    EXPECT(host_copy<uint8_t>(first, small) == std::vector<uint8_t>(small, 1));
    EXPECT(host_copy<uint8_t>(second, large) == std::vector<uint8_t>(large, 2));
    r.set(1);
  })));
}

TEST_CASE("a receive of another size than its send never completes", "[waiting]") {
  CHECK(all_well(run_ranks(2, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream stream = Rank::stream();
    const Buffer buffer(2 << 20);
    if (r.rank == 0)
      SUCCESS(ncclSend(buffer, 1 << 20, kUint8, 1, comm, stream));
    else
      SUCCESS(ncclRecv(buffer, (1 << 20) + 4, kUint8, 0, comm, stream));
    EXPECT(!Rank::done(stream, kAWhile));
    SUCCESS(ncclCommAbort(comm));
    EXPECT(Rank::done(stream, 2000));
  })));
}

TEST_CASE("equal bytes of another type match", "[waiting]") {
  CHECK(all_well(run_ranks(2, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream stream = Rank::stream();
    const Buffer buffer(64);
    if (r.rank == 0)
      SUCCESS(ncclSend(buffer, 8, kUint8, 1, comm, stream));
    else
      SUCCESS(ncclRecv(buffer, 2, kFloat32, 0, comm, stream));
    EXPECT(Rank::done(stream));
    r.set(0);
    r.await(0, 2);
  })));
}

TEST_CASE("two communicators on two streams do not wait for each other", "[waiting]") {
  CHECK(all_well(run_ranks(2, [](Rank& r) {
    const Comm comms[] = {r.comm(0), r.comm(1)};
    const Stream streams[] = {Rank::stream(), Rank::stream()};
    const Buffer buffers[] = {Buffer(64), Buffer(64)};
    for (int i = 0; i < 2; ++i) {
      const int which = r.rank == 0 ? i : 1 - i;
      SUCCESS(ncclAllReduce(buffers[which], buffers[which], 4, kFloat32, kSum, comms[which], streams[which]));
    }
    EXPECT(Rank::done(streams[0]) && Rank::done(streams[1]));
  })));
}

TEST_CASE("one communicator on two streams keeps the order of the calls", "[waiting]") {
  CHECK(all_well(run_ranks(2, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream slow = Rank::stream();
    const Stream fast = Rank::stream();
    const Buffer buffer = device_copy(std::vector<int>{1});
    if (r.rank == 0)
      cudaLaunchHostFunc(
          slow, [](void*) { Rank::pause(200); }, nullptr);
    SUCCESS(ncclAllReduce(buffer, buffer, 1, kInt32, kSum, comm, slow));   // 2
    SUCCESS(ncclAllReduce(buffer, buffer, 1, kInt32, kProd, comm, fast));  // 4
    EXPECT(Rank::done(fast));
    EXPECT(host_copy<int>(buffer, 1)[0] == 4);
    EXPECT(Rank::done(slow));
  })));
}

TEST_CASE("a fault keeps one call of one rank from completing, not those of the others", "[waiting]") {
  CHECK(all_well(run_ranks(2,
                           [](Rank& r) {
                             const Comm comm = r.comm();
                             const Stream stream = Rank::stream();
                             const Buffer buffer(64);
                             for (int call = 1; call <= 2; ++call)
                               SUCCESS(ncclAllReduce(buffer, buffer, 4, kFloat32, kSum, comm, stream));
                             EXPECT(Rank::done(stream));
                             SUCCESS(ncclAllReduce(buffer, buffer, 4, kFloat32, kSum, comm, stream));
                             EXPECT(Rank::done(stream, r.rank == 1 ? kAWhile : 5000) == (r.rank == 0));
                             r.set(0);
                             r.await(0, 2);
                           },
                           {"SIMNCCL_FAULT=1:3:stall"})));
}

TEST_CASE("small mismatches complete if so asked", "[waiting]") {
  CHECK(all_well(run_ranks(2,
                           [](Rank& r) {
                             const Comm comm = r.comm();
                             const Stream stream = Rank::stream();
                             const Buffer buffer = device_copy(std::vector<int>(64, r.rank + 1));
                             SUCCESS(ncclAllReduce(buffer, buffer, 1 + r.rank, kInt32, kSum, comm, stream));
                             EXPECT(Rank::done(stream));
                             EXPECT(host_copy<int>(buffer, 1)[0] == r.rank + 1);
                             SUCCESS(ncclAllReduce(buffer, buffer, 16, kInt32, kSum, comm, stream));
                             EXPECT(Rank::done(stream));
                             EXPECT(host_copy<int>(buffer, 16) == std::vector<int>(16, 3));
                             SUCCESS(ncclAllReduce(buffer, buffer, 17 + r.rank, kInt32, kSum, comm, stream));
                             EXPECT(!Rank::done(stream, kAWhile));
                           },
                           {"SIMNCCL_MISMATCH_COMPLETES=64"})));
}

namespace {

std::set<std::string> shared_memory() {
  std::set<std::string> names;
  DIR* directory = opendir("/dev/shm");
  if (directory == nullptr) return names;
  while (const dirent* entry = readdir(directory)) {
    if (std::string(entry->d_name).find("simnccl") != std::string::npos) names.insert(entry->d_name);
  }
  closedir(directory);
  return names;
}

}  // namespace

TEST_CASE("a killed rank leaves the others waiting, and nothing behind", "[waiting]") {
  const std::vector<int> statuses = run_ranks(3, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream stream = Rank::stream();
    const Buffer buffer(4 << 20);
    if (r.rank == 1) {
      for (int i = 0; i < 100; ++i)
        SUCCESS(ncclAllReduce(buffer, buffer, 1 << 20, kFloat32, kSum, comm, stream));
      Rank::pause(10);
      raise(SIGKILL);
    }
    for (int i = 0; i < 200; ++i)
      SUCCESS(ncclAllReduce(buffer, buffer, 1 << 20, kFloat32, kSum, comm, stream));
    EXPECT(!Rank::done(stream, 4000));
    SUCCESS(ncclCommAbort(comm));
    EXPECT(Rank::done(stream, 2000));
  });
  CHECK(statuses == std::vector<int>{0, -SIGKILL, 0});
  CHECK(shared_memory().empty());
}

TEST_CASE("a job whose communicator is never complete leaves nothing behind", "[waiting]") {
  const std::vector<int> statuses = run_ranks(2, [](Rank& r) {
    if (r.rank == 1) return r.await(0);
    const UniqueId id = r.id(0);
    r.set(0);
    alarm(1);
    Comm comm;
    ncclCommInitRank(&comm, 2, id, 0);
  });
  CHECK(statuses == std::vector<int>{-SIGALRM, 0});
  CHECK(shared_memory().empty());
}
