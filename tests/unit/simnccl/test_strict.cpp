// Where NCCL on hardware is strict: programs that are wrong there fail here, too.
#include "tests/unit/catch.h"
#include "tests/unit/simnccl/ranks.h"

using namespace simgpu::nccl;

namespace {

constexpr int kAWhile = 300;  // milliseconds
constexpr int kIllegalAddress = 700;
constexpr int kNotReady = 600;

// Rank 1 makes the call, rank 0 the right one of the same shape: it waits.
void check_fault(const std::function<int(Rank&, Comm, Stream)>& wrong) {
  CHECK(all_well(run_ranks(2, [&](Rank& r) {
    const Comm comm = r.comm();
    const Stream stream = Rank::stream();
    const Buffer enough(1 << 20);
    SUCCESS(ncclAllReduce(enough, enough, 100, kFloat32, kSum, comm, stream));
    EXPECT(Rank::done(stream));
    if (r.rank == 0) {
      SUCCESS(ncclAllGather(enough, enough, 1000, kFloat32, comm, stream));
      EXPECT(!Rank::done(stream, kAWhile) && cudaStreamQuery(stream) == kNotReady);
    } else {
      SUCCESS(wrong(r, comm, stream));  // NCCL does not look at the address; the device does
      EXPECT(cudaStreamSynchronize(stream) == kIllegalAddress);
      void* memory = nullptr;
      EXPECT(cudaMalloc(&memory, 16) == kIllegalAddress);  // and does not recover
    }
    r.set(0);
    r.await(0, 2);
  })));
}

}  // namespace

TEST_CASE("a buffer in memory that CUDA does not know faults the device", "[strict]") {
  check_fault([](Rank&, Comm comm, Stream stream) {
    static std::vector<float> host(4096);
    return ncclAllGather(host.data(), host.data(), 1000, kFloat32, comm, stream);
  });
}

TEST_CASE("a buffer with room for one block where all of them are received faults the device", "[strict]") {
  check_fault([](Rank&, Comm comm, Stream stream) {
    const Buffer one_block(4096);
    return ncclAllGather(one_block, one_block, 1000, kFloat32, comm, stream);
  });
}

TEST_CASE("memory that was given back faults the device", "[strict]") {
  check_fault([](Rank&, Comm comm, Stream stream) {
    const Buffer buffer(8192);
    if (cudaFree(buffer) != 0) return -1;
    return ncclAllGather(buffer, buffer, 1000, kFloat32, comm, stream);
  });
}

TEST_CASE("pinned memory of the host and a place inside an allocation are good buffers", "[strict]") {
  CHECK(all_well(run_ranks(2, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream stream = Rank::stream();
    void* pinned = nullptr;
    EXPECT(cudaMallocHost(&pinned, 4096) == 0);
    const Buffer buffer(8192);
    char* inside = static_cast<char*>(buffer.get()) + 4096;
    SUCCESS(ncclAllReduce(pinned, inside, 1024, kFloat32, kSum, comm, stream));
    EXPECT(Rank::done(stream));
  })));
}

TEST_CASE("a stream of another device is refused", "[strict]") {
  CHECK(all_well(run_ranks(2, [](Rank& r) {
    const Comm comm = r.comm();
    const Stream own = Rank::stream();
    const Buffer buffer(64);
    EXPECT(cudaSetDevice(5) == 0);
    const Stream foreign = Rank::stream();
    EXPECT(ncclAllReduce(buffer, buffer, 4, kFloat32, kSum, comm, foreign) == kUnhandledCudaError);
    // The device that is current does not matter, and nothing was counted.
    SUCCESS(ncclAllReduce(buffer, buffer, 4, kFloat32, kSum, comm, own));
    EXPECT(Rank::done(own));
  })));
}
