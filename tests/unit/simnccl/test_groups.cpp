// Groups, and calls from graphs.
#include "tests/unit/catch.h"
#include "tests/unit/simnccl/ranks.h"

using namespace simgpu::nccl;

TEST_CASE("calls are made at the end of the outermost group", "[groups]") {
  CHECK(all_well(run_ranks(2, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream stream = Rank::stream();
    const Buffer buffer = device_copy(std::vector<int>{1, 2});
    if (r.rank == 1) {
      SUCCESS(ncclGroupStart());
      SUCCESS(ncclGroupStart());
      SUCCESS(ncclAllReduce(buffer, buffer, 1, kInt32, kSum, comm, stream));
      SUCCESS(ncclAllReduce(buffer, buffer, 2, kInt32, kSum, comm, stream));
      SUCCESS(ncclGroupEnd());
      EXPECT(Rank::done(stream, 0));  // nothing was launched
      r.set(0);
      r.await(1);
      SUCCESS(ncclGroupEnd());
    } else {
      r.await(0);
      SUCCESS(ncclAllReduce(buffer, buffer, 1, kInt32, kSum, comm, stream));
      EXPECT(!Rank::done(stream, 200));
      r.set(1);
      SUCCESS(ncclAllReduce(buffer, buffer, 2, kInt32, kSum, comm, stream));
    }
    EXPECT(Rank::done(stream));
    EXPECT((host_copy<int>(buffer, 2) == std::vector<int>{4, 4}));
  })));
}

TEST_CASE("sends and receives of a group progress together", "[groups]") {
  const int size = GENERATE(2, 3, 4);
  CHECK(all_well(run_ranks(size, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream stream = Rank::stream();
    const size_t count = 1 << 20;  // more than a mailbox holds, in a circle and to itself
    std::vector<Buffer> outgoing;
    std::vector<Buffer> incoming;
    SUCCESS(ncclGroupStart());
    for (int peer = 0; peer < r.size; ++peer) {
      outgoing.push_back(device_copy(std::vector<int>(count, r.rank * 10 + peer)));
      incoming.emplace_back(count * sizeof(int));
      SUCCESS(ncclSend(outgoing.back(), count, kInt32, peer, comm, stream));
      SUCCESS(ncclRecv(incoming.back(), count, kInt32, peer, comm, stream));
    }
    SUCCESS(ncclGroupEnd());
    EXPECT(Rank::done(stream));
    for (int peer = 0; peer < r.size; ++peer) {
      EXPECT(host_copy<int>(incoming[peer], count) == std::vector<int>(count, peer * 10 + r.rank));
    }
  })));
}

TEST_CASE("several messages between two ranks keep their order", "[groups]") {
  CHECK(all_well(run_ranks(2, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream stream = Rank::stream();
    std::vector<Buffer> buffers;
    SUCCESS(ncclGroupStart());
    for (int i = 0; i < 30; ++i) {
      const size_t bytes = i * 20000;
      buffers.push_back(device_copy(std::vector<uint8_t>(bytes + 1, r.rank == 0 ? i : 255)));
      if (r.rank == 0)
        SUCCESS(ncclSend(buffers.back(), bytes, kUint8, 1, comm, stream));
      else
        SUCCESS(ncclRecv(buffers.back(), bytes, kUint8, 0, comm, stream));
    }
    SUCCESS(ncclGroupEnd());
    EXPECT(Rank::done(stream));
    if (r.rank == 0) return r.await(0);
    for (int i = 0; i < 30; ++i) {
      const std::vector<uint8_t> got = host_copy<uint8_t>(buffers[i], i * 20000 + 1);
      EXPECT(got.back() == 255);
      if (i > 0) EXPECT(got.front() == i && got[i * 20000 - 1] == i);
    }
    r.set(0);
  })));
}

TEST_CASE("calls of one group on several streams are one launch that all of them wait for", "[groups]") {
  CHECK(all_well(run_ranks(2, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream first = Rank::stream();
    const Stream second = Rank::stream();
    const Buffer a = device_copy(std::vector<int>{1});
    const Buffer b = device_copy(std::vector<int>{2});
    if (r.rank == 1) r.await(0);
    SUCCESS(ncclGroupStart());
    SUCCESS(ncclAllReduce(a, a, 1, kInt32, kSum, comm, first));
    SUCCESS(ncclAllReduce(b, b, 1, kInt32, kSum, comm, second));
    SUCCESS(ncclGroupEnd());
    if (r.rank == 0) {
      EXPECT(!Rank::done(first, 100));
      EXPECT(!Rank::done(second, 100));
      r.set(0);
    }
    EXPECT(Rank::done(second));
    EXPECT(host_copy<int>(a, 1)[0] == 2 && host_copy<int>(b, 1)[0] == 4);
    EXPECT(Rank::done(first));
  })));
}

TEST_CASE("a refused call makes its whole group fail, and nothing of it is counted", "[groups]") {
  CHECK(all_well(run_ranks(2, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream stream = Rank::stream();
    const Buffer buffer = device_copy(std::vector<int>{1});
    SUCCESS(ncclGroupStart());
    SUCCESS(ncclAllReduce(buffer, buffer, 1, kInt32, kSum, comm, stream));
    EXPECT(ncclBroadcast(buffer, buffer, 1, kInt32, 2, comm, stream) == kInvalidArgument);
    EXPECT(ncclGroupEnd() == kInvalidArgument);
    EXPECT(Rank::done(stream));
    EXPECT(host_copy<int>(buffer, 1)[0] == 1);
    if (r.rank == 0) EXPECT(ncclAllReduce(buffer, buffer, 1, 77, kSum, comm, stream) == kInvalidArgument);
    SUCCESS(ncclAllReduce(buffer, buffer, 1, kInt32, kSum, comm, stream));
    EXPECT(Rank::done(stream));
    EXPECT(host_copy<int>(buffer, 1)[0] == 2);
    EXPECT(ncclGroupEnd() == kInvalidUsage);
  })));
}

TEST_CASE("a send to oneself needs its receive in the same group", "[groups]") {
  CHECK(all_well(run_ranks(1, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream stream = Rank::stream();
    const Buffer from = device_copy(std::vector<int>{5});
    const Buffer to(sizeof(int));
    EXPECT(ncclSend(from, 1, kInt32, 0, comm, stream) == kInvalidUsage);
    SUCCESS(ncclGroupStart());
    SUCCESS(ncclSend(from, 1, kInt32, 0, comm, stream));
    SUCCESS(ncclRecv(to, 1, kInt32, 0, comm, stream));
    SUCCESS(ncclGroupEnd());
    EXPECT(Rank::done(stream));
    EXPECT(host_copy<int>(to, 1)[0] == 5);
  })));
}

TEST_CASE("empty collectives are discarded, empty messages are not", "[groups]") {
  CHECK(all_well(run_ranks(2, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream stream = Rank::stream();
    const Buffer buffer(64);
    if (r.rank == 0) SUCCESS(ncclAllReduce(nullptr, nullptr, 0, kInt32, kSum, comm, stream));
    SUCCESS(ncclAllReduce(buffer, buffer, 1, kInt32, kSum, comm, stream));
    EXPECT(Rank::done(stream));
    if (r.rank == 0) {
      SUCCESS(ncclRecv(nullptr, 0, kInt32, 1, comm, stream));
      EXPECT(!Rank::done(stream, 200));
      r.set(0);
    } else {
      r.await(0);
      SUCCESS(ncclSend(nullptr, 0, kInt32, 0, comm, stream));
    }
    EXPECT(Rank::done(stream));
    r.set(1);
    r.await(1, 2);
  })));
}

TEST_CASE("a captured call is made at every replay", "[groups]") {
  CHECK(all_well(run_ranks(2, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream stream = Rank::stream();
    const Buffer buffer = device_copy(std::vector<int>{1});
    SUCCESS(cudaStreamBeginCapture(stream, 2));
    SUCCESS(ncclAllReduce(buffer, buffer, 1, kInt32, kSum, comm, stream));
    void* graph = nullptr;
    void* executable = nullptr;
    SUCCESS(cudaStreamEndCapture(stream, &graph));
    SUCCESS(cudaGraphInstantiate(&executable, graph, 0));
    EXPECT(host_copy<int>(buffer, 1)[0] == 1);
    for (int i = 0; i < 3; ++i) SUCCESS(cudaGraphLaunch(executable, stream));
    SUCCESS(ncclAllReduce(buffer, buffer, 1, kInt32, kSum, comm, stream));
    EXPECT(Rank::done(stream));
    EXPECT(host_copy<int>(buffer, 1)[0] == 16);
  })));
}
