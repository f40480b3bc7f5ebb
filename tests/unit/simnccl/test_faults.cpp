// Faults on demand: SIMNCCL_FAULT.
#include <csignal>

#include "simgpu/nccl/fault_setting.h"
#include "tests/unit/catch.h"
#include "tests/unit/simnccl/ranks.h"

using namespace simgpu::nccl;

namespace {

constexpr int kAWhile = 300;  // milliseconds in which a call that can complete has completed

// One member's stream, communicator and buffer.
struct Job {
  explicit Job(Rank& r) : comm(r.comm()), stream(Rank::stream()), buffer(64) {}

  int all_reduce() const { return ncclAllReduce(buffer, buffer, 4, kFloat32, kSum, comm, stream); }

  const Comm comm;
  const Stream stream;
  const Buffer buffer;
};

// No rank ends before all have come here.
void meet(const Rank& r, int flag) {
  r.set(flag);
  r.await(flag, r.size);
}

std::vector<Fault> parsed(const char* text) {
  std::vector<Fault> faults;
  return parse_faults(text, &faults) ? faults : std::vector<Fault>{};
}

}  // namespace

TEST_CASE("faults are written as rank, call, kind and value", "[faults]") {
  const std::vector<Fault> two = parsed("1:3:stall,0:7:delay:250");
  REQUIRE(two.size() == 2);
  CHECK((two[0].rank == 1 && two[0].call == 3 && two[0].kind == Fault::Kind::kStall));
  CHECK((two[1].rank == 0 && two[1].call == 7 && two[1].kind == Fault::Kind::kDelay && two[1].value == 250));
  CHECK(parsed("0:1:error").front().value == kRemoteError);
  CHECK(parsed("0:1:error:2").front().value == kSystemError);
  for (const char* wrong : {"", "1:3", "1:0:stall", "-1:3:stall", "1:3:stalls", "1:3:stall:5", "1:3:error:7",
                            "1:3:kill,", "x:3:kill", "1:3:delay:", "1:3:delay:0"}) {
    INFO(wrong);
    CHECK(parsed(wrong).empty());
  }
}

TEST_CASE("a kernel that never ends in front of a call: nobody completes it", "[faults]") {
  const auto body = [](Rank& r) {
    const Job job(r);
    SUCCESS(job.all_reduce());
    EXPECT(Rank::done(job.stream));
    Event before = nullptr;
    EXPECT(cudaEventCreateWithFlags(&before, 2) == 0);
    EXPECT(cudaEventRecord(before, job.stream) == 0);
    SUCCESS(job.all_reduce());
    EXPECT(!Rank::done(job.stream, kAWhile));
    // What marks the call's beginning is not reached on that rank, and is on the other.
    EXPECT((cudaEventQuery(before) == 0) == (r.rank == 0));
    EXPECT(r.rank == 0 || cudaEventQuery(before) == 600);
    // The kernel does not belong to the communicator: an abort does not end it.
    SUCCESS(ncclCommAbort(job.comm));
    EXPECT(Rank::done(job.stream, kAWhile * 3) == (r.rank == 0));
    meet(r, 0);
  };
  CHECK(all_well(run_ranks(2, body, {"SIMNCCL_FAULT=1:2:kernel"})));
}

TEST_CASE("an event with work behind it stays in front of the kernel", "[faults]") {
  const auto body = [](Rank& r) {
    const Job job(r);
    Event early = nullptr;
    EXPECT(cudaEventCreateWithFlags(&early, 2) == 0 && cudaEventRecord(early, job.stream) == 0);
    EXPECT(cudaMemsetAsync(job.buffer, 0, 64, job.stream) == 0);
    SUCCESS(job.all_reduce());
    EXPECT(cudaEventQuery(early) == 0 && !Rank::done(job.stream, kAWhile));
    meet(r, 0);
  };
  CHECK(all_well(run_ranks(2, body, {"SIMNCCL_FAULT=1:1:kernel"})));
}

TEST_CASE("a dropped call is complete on its rank; the others wait for it, and later calls for them",
          "[faults]") {
  const auto body = [](Rank& r) {
    const Job job(r);
    SUCCESS(job.all_reduce());
    SUCCESS(job.all_reduce());
    EXPECT(Rank::done(job.stream, r.rank == 1 ? 5000 : kAWhile) == (r.rank == 1));
    if (r.rank == 1) {
      SUCCESS(job.all_reduce());
      EXPECT(!Rank::done(job.stream, kAWhile));
    }
    meet(r, 0);
    EXPECT(!Rank::done(job.stream, kAWhile));
    meet(r, 1);
    SUCCESS(ncclCommAbort(job.comm));
    EXPECT(Rank::done(job.stream, 2000));
  };
  CHECK(all_well(run_ranks(3, body, {"SIMNCCL_FAULT=1:2:drop"})));
}

TEST_CASE("a delayed call completes late on all ranks", "[faults]") {
  const auto body = [](Rank& r) {
    const Job job(r);
    SUCCESS(job.all_reduce());
    EXPECT(Rank::done(job.stream));
    SUCCESS(job.all_reduce());
    EXPECT(!Rank::done(job.stream, kAWhile));
    EXPECT(Rank::done(job.stream));
    SUCCESS(job.all_reduce());
    EXPECT(Rank::done(job.stream));
  };
  CHECK(all_well(run_ranks(2, body, {"SIMNCCL_FAULT=1:2:delay:1500"})));
}

TEST_CASE("an error is asynchronous, refuses later calls, and ends with the abort", "[faults]") {
  const auto body = [](Rank& r) {
    const Job job(r);
    int error = -1;
    SUCCESS(job.all_reduce());
    EXPECT(Rank::done(job.stream));
    SUCCESS(ncclCommGetAsyncError(job.comm, &error));
    EXPECT(error == kOk);
    SUCCESS(job.all_reduce());
    EXPECT(!Rank::done(job.stream, kAWhile));
    SUCCESS(ncclCommGetAsyncError(job.comm, &error));
    EXPECT(error == (r.rank == 1 ? kSystemError : kOk));
    if (r.rank == 1) EXPECT(job.all_reduce() == kSystemError);
    meet(r, 0);
    SUCCESS(ncclCommAbort(job.comm));
    EXPECT(Rank::done(job.stream, 2000));
  };
  CHECK(all_well(run_ranks(2, body, {"SIMNCCL_FAULT=1:2:error:2"})));
}

TEST_CASE("a rank is killed when it makes the call", "[faults]") {
  const auto body = [](Rank& r) {
    const Job job(r);
    SUCCESS(job.all_reduce());
    EXPECT(Rank::done(job.stream));
    SUCCESS(job.all_reduce());
    if (r.rank == 2) return;  // not reached
    EXPECT(!Rank::done(job.stream, kAWhile));
  };
  CHECK(run_ranks(3, body, {"SIMNCCL_FAULT=2:2:kill"}) == std::vector<int>{0, 0, -SIGKILL});
}

TEST_CASE("what is not counted does not shift the call of a fault", "[faults]") {
  const auto body = [](Rank& r) {
    const Job job(r);
    SUCCESS(ncclAllReduce(job.buffer, job.buffer, 0, kFloat32, kSum, job.comm, job.stream));
    SUCCESS(ncclGroupStart());
    SUCCESS(ncclSend(job.buffer, 1, kInt32, 1 - r.rank, job.comm, job.stream));
    SUCCESS(ncclRecv(job.buffer, 1, kInt32, 1 - r.rank, job.comm, job.stream));
    SUCCESS(ncclGroupEnd());
    SUCCESS(job.all_reduce());
    EXPECT(Rank::done(job.stream));
    SUCCESS(job.all_reduce());
    EXPECT(Rank::done(job.stream, r.rank == 1 ? kAWhile : 5000) == (r.rank == 0));
    meet(r, 0);
  };
  CHECK(all_well(run_ranks(2, body, {"SIMNCCL_FAULT=1:2:stall"})));
}
