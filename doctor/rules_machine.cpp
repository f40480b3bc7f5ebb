// Limits of the machine, and who else uses it.
#include <algorithm>

#include "doctor/rule.h"

namespace dshang::doctor {
namespace {

constexpr double kMiB = 1 << 20, kGiB = 1 << 30;
constexpr double kLeastShm = kGiB;
constexpr int kFewFiles = 4096;
constexpr double kForeignShare = 0.05;        // of the GPU's memory
constexpr double kForeignBytes = 500 * kMiB;  // a desktop

std::string gib(double bytes) {
  return number_text(static_cast<long>(bytes / kGiB * 10 + 0.5) / 10.0) + " GiB";
}
std::string mib(double bytes) { return number_text(static_cast<long>(bytes / kMiB + 0.5)) + " MiB"; }

// Ranks that start on this node: told, or one a GPU.
int local_ranks(const Facts& facts) {
  if (facts.ranks_per_node) return *facts.ranks_per_node;
  if (facts.world_size && facts.nodes) return *facts.world_size / std::max(1, *facts.nodes);
  return facts.machine.gpus.value_or(1);
}

void shared_memory(const Facts& facts, Hits& hits) {
  if (!facts.machine.shm_bytes || *facts.machine.shm_bytes >= kLeastShm || local_ranks(facts) < 2) return;
  hits.add("/dev/shm", "/dev/shm has " + mib(*facts.machine.shm_bytes) + " for " +
                           std::to_string(local_ranks(facts)) + " ranks");
}

void open_files(const Facts& facts, Hits& hits) {
  if (!facts.machine.open_files || *facts.machine.open_files >= kFewFiles || local_ranks(facts) < 2) return;
  hits.add("ulimit -n", "only " + std::to_string(*facts.machine.open_files) +
                            " files may be open: loader workers pass batches as open files");
}

void locked_memory(const Facts& facts, Hits& hits) {
  if (!facts.machine.memlock_bytes || !facts.config || !facts.config->readable()) return;
  const Config& config = *facts.config;
  for (const char* block : {"offload_optimizer", "offload_param"}) {
    int least = std::string(block) == "offload_param" ? 3 : 1;
    if (config.device(block) == "none" || config.stage() < least) continue;
    std::string key = "zero_optimization." + std::string(block) + ".pin_memory";
    const Json* pinned = config.at(key);
    bool pins = pinned && truth(*pinned) ? *truth(*pinned) : !older(facts.deepspeed, "0.19.3");
    if (!pins || *facts.machine.memlock_bytes >= kGiB) continue;
    hits.add("ulimit -l", std::string(block) + " pins memory (" +
                              (pinned ? "pin_memory is true" : "the default since 0.19.5") + "), and only " +
                              mib(*facts.machine.memlock_bytes) + " may be locked");
  }
}

void foreign(const Facts& facts, Hits& hits) {
  int number = 0;
  for (const Gpu& gpu : facts.machine.gpu) {
    std::string name = "GPU " + std::to_string(number++);
    double used = gpu.foreign_bytes.value_or(0);
    if (used < kForeignBytes || (gpu.memory_bytes && used < kForeignShare * *gpu.memory_bytes)) continue;
    std::string who = gpu.foreign_process.empty() ? "another process" : gpu.foreign_process;
    hits.add(name, who + " holds " + gib(used) + " of " + name);
  }
}

}  // namespace

const Rules& machine_rules() {
  static const Rules rules = {
      {"X-08", Area::kMachine, Severity::kWillFail, "size of /dev/shm, ranks a node",
       "less than 1 GiB and more than one rank",
       "NCCL and loader workers share memory there (Docker's default is 64 MiB)",
       "docker run --shm-size=16g or --ipc=host; Kubernetes: an emptyDir with medium: Memory at /dev/shm.",
       "Error while creating shared memory segment; NVIDIA/nccl#342", shared_memory},
      {"X-40", Area::kMachine, Severity::kRisk, "ulimit -n, ranks a node",
       "fewer than 4096 open files, several ranks", "loader workers hand batches over as open files",
       "ulimit -n 65536, or torch.multiprocessing.set_sharing_strategy(\"file_system\").",
       "received 0 items of ancdata", open_files},
      {"X-45", Area::kMachine, Severity::kRisk, "ulimit -l, offload, pin_memory (default true since 0.19.5)",
       "less than 1 GiB may be locked and offload pins memory", "pinning fails or starves the host",
       "ulimit -l unlimited, docker --ulimit memlock=-1, or \"pin_memory\": false.",
       "ibv_reg_mr failed with error Cannot allocate memory", locked_memory},
      {"12.1-2", Area::kMachine, Severity::kAdvice, "processes on the GPUs",
       "one holds more than 5 % and 500 MiB", "a rank that was left over keeps memory: step 1 runs out of it",
       "Look at nvidia-smi, end the process that is named, look again.",
       "CUDA out of memory in the first step", foreign},
  };
  return rules;
}

}  // namespace dshang::doctor
