// `dshang dry-run`: an unmodified training command on simulated GPUs, watched as on real ones.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dshang::monitor {

struct DryRunOptions {
  int ranks = 0;                 // 1 to 64: processes, and devices of the simulated machine
  std::string gpu;               // whose memory a device has, e.g. "a100-40g"; "" is "h100-80g"
  std::string numerics = "int";  // off, int or small: see simgpu/python
  std::vector<std::string> command;
};

// Runs it. A command of torchrun or deepspeed replaces this process; a Python program is started once a rank,
// signals are passed on, and the status is that of the first rank that fails (128 + the signal if it was
// killed by one). Bad input: one line on stderr, status 2.
int dry_run(const DryRunOptions& options);

// --- what it does, step by step, for the tests ---

struct DryRunPlan {
  std::vector<std::pair<std::string, std::string>> environment;  // to be set
  std::vector<std::string> command;
  bool once_a_rank;  // start it for every rank; else it starts the ranks itself
};

// Where the libraries and the shim are.
struct DryRunPlaces {
  std::string libraries;  // directory of libdshang.so and libsimcuda.so
  std::string shim;       // directory simgpu_python
};

// nullopt: `error` says what is wrong with the options.
std::optional<DryRunPlan> plan_dry_run(const DryRunOptions& options, const DryRunPlaces& places,
                                       std::string* error);

// Starts the plan's command for ranks 0 to n-1 of a job on this machine and waits for them.
int run_ranks(const DryRunPlan& plan, int ranks);

}  // namespace dshang::monitor
