#include "simgpu/nccl/group.h"

#include <thread>

#include "simgpu/core/context.h"
#include "simgpu/nccl/error.h"
#include "simgpu/nccl/launch.h"

namespace simgpu::nccl {
namespace {

struct Group {
  int depth = 0;
  Result refused = kOk;
  std::vector<Job> jobs;
  std::vector<std::shared_ptr<Launch>> launches;

  void clear() {
    refused = kOk;
    jobs.clear();
    launches.clear();
  }
};

thread_local Group group;

// Each may wait for another one of the same process, so each has a thread of its own.
Result run_jobs(std::vector<Job> jobs) {
  if (jobs.empty()) return kOk;
  if (jobs.size() == 1) return jobs.front()();
  std::vector<Result> results(jobs.size(), kOk);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < jobs.size(); ++i) {
    threads.emplace_back([&, i, current = device()] {
      set_device(current);
      results[i] = jobs[i]();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Result result : results) {
    if (result != kOk) return result;
  }
  return kOk;
}

Result commit() {
  if (group.refused != kOk) {
    const Result result = group.refused;
    group.clear();
    return result;
  }
  const std::vector<Job> jobs = std::move(group.jobs);
  const std::vector<std::shared_ptr<Launch>> launches = std::move(group.launches);
  group.clear();
  for (const auto& launch : launches) {
    if (const Result result = launch->check(); result != kOk) return result;
  }
  Result result = run_jobs(jobs);
  for (const auto& launch : launches) {
    const Result launched = queue_launch(launch);
    if (result == kOk) result = launched;
  }
  return result;
}

Launch& launch_of(std::shared_ptr<Comm> comm) {
  for (const auto& launch : group.launches) {
    if (launch->comm == comm) return *launch;
  }
  group.launches.push_back(std::make_shared<Launch>(std::move(comm)));
  return *group.launches.back();
}

Result end_of_call() { return group.depth == 0 ? commit() : kOk; }

}  // namespace

void group_start() { ++group.depth; }

Result group_end() {
  if (group.depth == 0) return fail(kInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  return --group.depth == 0 ? commit() : kOk;
}

Result group_discard() {
  if (group.depth == 0) return fail(kInvalidUsage, "ncclGroupSimulateEnd without ncclGroupStart");
  if (--group.depth > 0) return kOk;
  const Result result = group.refused;
  group.clear();
  return result;
}

Result add_job(Job job) {
  group.jobs.push_back(std::move(job));
  return end_of_call();
}

Result add_collective(std::shared_ptr<Comm> comm, const Collective& collective, void* stream) {
  Launch& launch = launch_of(std::move(comm));
  launch.collectives.push_back(collective);
  launch.add_stream(stream);
  return end_of_call();
}

Result add_transfer(std::shared_ptr<Comm> comm, const Transfer& transfer, void* stream) {
  Launch& launch = launch_of(std::move(comm));
  launch.transfers.push_back(transfer);
  launch.add_stream(stream);
  return end_of_call();
}

Result refuse(Result result) {
  if (group.depth > 0 && group.refused == kOk && result != kInProgress) group.refused = result;
  return result;
}

}  // namespace simgpu::nccl
