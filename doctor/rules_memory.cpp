// Will it fit: GPU, host, disk.  Estimates from the number of parameters, without activations.
#include <algorithm>
#include <cmath>

#include "doctor/model.h"
#include "doctor/rule.h"

namespace dshang::doctor {
namespace {

constexpr double kGB = 1e9;
// Bytes a parameter, 16-bit training with Adam: weights 2, gradients 2, fp32 copy and two moments 12.
constexpr double kWeight = 2, kGradient = 2, kOptimizer = 12;

std::string gb(double bytes) { return number_text(std::round(bytes / kGB * 10) / 10) + " GB"; }

std::optional<double> parameters(const Facts& facts) {
  if (facts.parameters) return facts.parameters;
  return facts.model ? parameters_of(facts.model->config) : std::nullopt;
}

// Bytes of weights, gradients and optimizer state on one GPU.
double on_gpu(const Config& config, double parameters, int ranks) {
  int stage = config.stage();
  double optimizer = kOptimizer * parameters / (stage >= 1 ? ranks : 1);
  double gradients = kGradient * parameters / (stage >= 2 ? ranks : 1);
  double weights = kWeight * parameters / (stage >= 3 ? ranks : 1);
  if (stage >= 1 && config.device("offload_optimizer") != "none") optimizer = gradients = 0;
  if (stage >= 3 && config.device("offload_param") != "none") weights = 0;
  return weights + gradients + optimizer;
}

bool sixteen_bit(const Config& config) {
  return config.on("bf16.enabled") || config.on("fp16.enabled") || config.on("bfloat16.enabled");
}

void gpu_memory(const Facts& facts, const Config& config, Hits& hits) {
  auto count = parameters(facts);
  auto ranks = facts.data_parallel();
  if (!count || !ranks || facts.machine.gpu.empty() || !sixteen_bit(config)) return;
  double least = 0;
  for (const Gpu& gpu : facts.machine.gpu) {
    if (gpu.memory_bytes) least = least == 0 ? *gpu.memory_bytes : std::min(least, *gpu.memory_bytes);
  }
  double needed = on_gpu(config, *count, *ranks);
  if (least == 0 || needed <= least) return;
  hits.add(config.place("zero_optimization.stage"),
           "weights, gradients and optimizer of " + number_text(std::round(*count / 1e6)) +
               " million parameters take " + gb(needed) + " on each GPU in stage " +
               std::to_string(config.stage()) + " (with Adam), a GPU has " + gb(least));
}

void host_memory(const Facts& facts, const Config& config, Hits& hits) {
  auto count = parameters(facts);
  if (!count || !facts.machine.memory_bytes) return;
  double share = 1.0 / std::max(1, facts.nodes.value_or(1)), needed = 0;
  if (config.stage() >= 1 && config.device("offload_optimizer") == "cpu")
    needed += (kOptimizer + 4) * *count * share;
  if (config.stage() >= 3 && config.device("offload_param") == "cpu") needed += kWeight * *count * share;
  if (needed <= *facts.machine.memory_bytes) return;
  hits.add(config.place("zero_optimization"),
           "the offloaded state takes " + gb(needed) + " of memory on each node, free are " +
               gb(*facts.machine.memory_bytes) + ": the kernel ends the ranks (exit code -9)");
}

void gathered_copy(const Facts& facts, const Config& config, Hits& hits) {
  auto count = parameters(facts);
  bool gathers = config.on("zero_optimization.stage3_gather_16bit_weights_on_model_save") ||
                 config.on("zero_optimization.stage3_gather_fp16_weights_on_model_save");
  if (!count || !facts.machine.memory_bytes || config.stage() != 3 || !gathers) return;
  double needed = kWeight * *count;
  if (needed <= *facts.machine.memory_bytes) return;
  hits.add(config.place("zero_optimization.stage3_gather_16bit_weights_on_model_save"),
           "saving gathers " + gb(needed) + " in the memory of rank 0's node, free are " +
               gb(*facts.machine.memory_bytes));
}

double checkpoint_bytes(const Checkpoint& checkpoint) {
  std::string tag = checkpoint.latest.value_or("");
  double bytes = 0;
  for (const Checkpoint::File& file : checkpoint.files) {
    if (tag.empty() || file.path.starts_with(tag + "/")) bytes += file.bytes;
  }
  return bytes;
}

void disk(const Facts& facts, Hits& hits) {
  if (!facts.checkpoint || !facts.checkpoint->free_bytes) return;
  double bytes = checkpoint_bytes(*facts.checkpoint), free = *facts.checkpoint->free_bytes;
  if (bytes < 1e6 || free >= 2 * bytes) return;
  hits.add(facts.checkpoint->path, "a checkpoint takes " + gb(bytes) + ", free on its disk are " + gb(free));
}

}  // namespace

const Rules& memory_rules() {
  static const Rules rules = {
      {"12.6-1", Area::kModel, Severity::kWillFail, "parameters, stage, offload, ranks, memory of a GPU",
       "weights, gradients and Adam's state alone do not fit", "the model does not fit this way",
       "A higher stage, more ranks or offload. Activations come on top: smaller micro batch, gradient "
       "checkpointing in the model.",
       "CUDA out of memory. Tried to allocate", with_config<gpu_memory>},
      {"X-01", Area::kModel, Severity::kWillFail, "parameters, offload to the CPU, free memory of a node",
       "the offloaded state does not fit", "offload moves the state into host memory",
       "Less offload, NVMe, more nodes, \"pin_memory\": false.", "exits with return code = -9",
       with_config<host_memory>},
      {"12.6-3", Area::kModel, Severity::kWillFail,
       "parameters, stage3_gather_16bit_weights_on_model_save, free memory", "the gathered copy does not fit",
       "rank 0 keeps the whole 16-bit copy in host memory",
       "Leave the key false and convert the checkpoint with its zero_to_fp32.py on a larger machine.",
       "exits with return code = -9 in save", with_config<gathered_copy>},
      {"12.7-5", Area::kCheckpoint, Severity::kWillFail, "size of a checkpoint, free space of its disk",
       "less than two more fit", "the optimizer's state is saved each time",
       "Keep fewer (save_total_limit=2), save less often, or free space.",
       "No space left on device; PytorchStreamWriter failed writing file", disk},
  };
  return rules;
}

}  // namespace dshang::doctor
