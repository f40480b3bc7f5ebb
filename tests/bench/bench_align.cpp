// Replays a large job through the comparison: 1 024 ranks x 2 000 calls of one communicator, healthy and with one rank
// that skips a module.  Prints nanoseconds a record beside the cost of copying the same records once, in the same run.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/job/divergence.h"
#include "detectors/run.h"

namespace {

using namespace dshang;
using Clock = std::chrono::steady_clock;

constexpr int kRanks = 1024, kCalls = 2000, kRound = 19;

flight::OpInfo op(const char* name, std::uint32_t traits) {
  flight::OpInfo info{};
  std::strncpy(info.name, name, sizeof info.name - 1);
  info.traits = traits | flight::kOpCollective;
  return info;
}

job::Call call_of(int rank, int skipping, int number) {
  int at = number;
  if (rank == skipping && number > kCalls / 2) at += 1;  // one gather left out
  int in_round = at % kRound;
  job::Call call;
  call.number = static_cast<std::uint64_t>(number);
  call.op = in_round == 18 ? 2 : in_round > 5 && in_round % 2 ? 1 : 0;
  call.count = 1000 + static_cast<std::uint64_t>(in_round % 6);
  call.dtype = flight::DType::kBF16;
  call.reduce_op = call.op ? flight::ReduceOp::kSum : flight::ReduceOp::kNone;
  call.step = number / kRound;
  call.enter_ns = static_cast<std::uint64_t>(number) * 1000;
  call.return_ns = call.done_ns = call.enter_ns + 500;
  call.flags = flight::kCallReturned | flight::kCallDone;
  return call;
}

std::unique_ptr<job::Job> make_job(int skipping) {
  auto job = std::make_unique<job::Job>();
  for (int rank = 0; rank < kRanks; ++rank) {
    auto process = std::make_unique<job::Process>();
    job::RankRecords& r = process->records;
    r.rank = rank;
    r.pid = rank + 1;
    r.world_size = kRanks;
    r.step = kCalls / kRound;
    r.ops = {op("all_gather", 0), op("reduce_scatter", flight::kOpReduces), op("all_reduce", flight::kOpReduces)};
    job::Comm comm;
    comm.state = flight::CommState::kReady;
    comm.id = 1;
    comm.rank = rank;
    comm.size = kRanks;
    r.comms.push_back(comm);
    for (int number = 1; number <= kCalls; ++number) r.calls.push(call_of(rank, skipping, number));
    job->processes.push_back(std::move(process));
  }
  job->journal.now_ns = 1'000'000'000;
  return job;
}

double nanoseconds_a_record(Clock::duration took) {
  return static_cast<double>(std::chrono::duration_cast<std::chrono::nanoseconds>(took).count()) / (double(kRanks) * kCalls);
}

double copy_cost(const job::Job& job) {
  auto start = Clock::now();
  std::uint64_t sum = 0;
  for (const auto& process : job.processes) {
    job::Window<job::Call> copy = process->records.calls;
    sum += copy.at(copy.end() - 1).number;
  }
  auto took = Clock::now() - start;
  if (sum == 0) std::abort();
  return nanoseconds_a_record(took);
}

double analyse_cost(const job::Job& job, std::size_t expected) {
  auto start = Clock::now();
  job::Analysis analysis = detect::analyse(job);
  auto took = Clock::now() - start;
  if (analysis.findings.size() != expected) {
    std::fprintf(stderr, "bench_align: %zu findings, expected %zu\n", analysis.findings.size(), expected);
    std::exit(1);
  }
  return nanoseconds_a_record(took);
}

}  // namespace

int main() {
  for (int skipping : {-1, 517}) {
    auto job = make_job(skipping);
    double copy = copy_cost(*job);
    double analyse = analyse_cost(*job, skipping < 0 ? 0 : 1);
    std::printf("%-9s %d ranks x %d calls: %.0f ns a record, %.1f times the copy of the records (%.0f ns); asked: <= 1000 ns\n",
                skipping < 0 ? "healthy" : "one skips", kRanks, kCalls, analyse, analyse / copy, copy);
  }
  return 0;
}
