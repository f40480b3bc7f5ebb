// ZeRO: gathering on save, offload, NVMe, ZenFlow.
#include <algorithm>
#include <iterator>

#include "doctor/rule.h"

namespace dshang::doctor {
namespace {

constexpr const char* kBlocks[] = {"offload_optimizer", "offload_param"};
constexpr const char* kFlow = "zero_optimization.zenflow";
constexpr double kSmallShare = 0.02;   // topk_ratio
constexpr double kLongInterval = 16;   // update_interval, steps
constexpr double kDefaultInCpu = 1e9;  // offload_param.max_in_cpu, elements

std::string path_of(const char* block, const char* key) {
  return "zero_optimization." + std::string(block) + "." + key;
}

bool zenflow(const Config& config) {
  const Json* block = config.at(kFlow);
  return block && block->is_object();
}

// Whether the script saves whole weights, or may: one that is not known, and Hugging Face's Trainer.
bool may_save_whole(const Facts& facts) {
  const std::string& text = facts.launch.script_text;
  if (text.empty() || facts.trainer == Trainer::kHf) return true;
  constexpr const char* kCalls[] = {"save_16bit_model", "save_fp16_model", "save_pretrained", "save_model"};
  return std::any_of(std::begin(kCalls), std::end(kCalls),
                     [&](const char* call) { return text.find(call) != std::string::npos; });
}

void ungathered(const Facts& facts, const Config& config, Hits& hits) {
  if (config.stage() != 3 || !may_save_whole(facts)) return;
  for (const char* key : {"stage3_gather_16bit_weights_on_model_save", "gather_16bit_weights_on_model_save",
                          "stage3_gather_fp16_weights_on_model_save"}) {
    if (config.on("zero_optimization." + std::string(key))) return;
  }
  hits.add(config.place("zero_optimization"),
           "ZeRO-3 without stage3_gather_16bit_weights_on_model_save: save_16bit_model and the Trainer's "
           "save write "
           "no whole weights (save_checkpoint is not concerned)");
}

void ignored_offload(const Facts&, const Config& config, Hits& hits) {
  int stage = config.stage();
  std::string in_stage = " in stage " + std::to_string(stage);
  if (stage < 3 && config.device("offload_param") != "none")
    hits.add(config.place("zero_optimization.offload_param"), "offload_param is ignored" + in_stage);
  std::string device = config.device("offload_optimizer");
  if (stage == 0 && device != "none")
    hits.add(config.place("zero_optimization.offload_optimizer"), "offload_optimizer is ignored" + in_stage);
  if (stage > 0 && stage < 3 && device == "nvme")
    hits.add(config.place("zero_optimization.offload_optimizer.device"), "nvme is taken for cpu" + in_stage);
  auto ratio = config.number("zero_optimization.offload_optimizer.ratio");
  if (stage < 3 && ratio && *ratio < 1) {
    hits.add(config.place("zero_optimization.offload_optimizer.ratio"),
             "a ratio below 1 is refused" + in_stage, "", Severity::kWillFail);
  }
}

const PlaceOnDisk* place_of(const Facts& facts, const std::string& path) {
  auto found = facts.machine.places.find(path);
  return found == facts.machine.places.end() ? nullptr : &found->second;
}

void nvme_without_path(const Facts& facts, const Config& config, Hits& hits) {
  if (config.stage() != 3) return;
  for (const char* block : kBlocks) {
    if (config.device(block) != "nvme") continue;
    std::string key = path_of(block, "nvme_path"), path = config.text(key);
    if (path.empty() || path == "auto") {
      hits.add(config.place(key), std::string(block) + " goes to nvme, but nvme_path is missing");
    } else if (const PlaceOnDisk* place = place_of(facts, path); place && place->writable == false) {
      hits.add(config.place(key), place->within.empty()
                                      ? path + " cannot be written"
                                      : path + " does not exist and cannot be made in " + place->within);
    }
  }
}

// What is wrong with the place; "" nothing known.
std::string slow_place(const Facts& facts, const std::string& path) {
  const PlaceOnDisk* place = place_of(facts, path);
  std::string kind = place ? place->filesystem : "";
  if (path.starts_with("/dev/shm") || kind == "tmpfs" || kind == "ramfs") return "is memory, no disk";
  if (kind == "overlay") return "is the container's own layer (overlay), no NVMe disk";
  if (kind.starts_with("nfs") || kind == "lustre" || kind == "cifs" || kind == "fuse")
    return "is on a network (" + kind + ")";
  if (place && place->rotational == true) return "is on a rotating disk";
  return "";
}

void nvme_place(const Facts& facts, const Config& config, Hits& hits) {
  if (config.stage() != 3) return;
  for (const char* block : kBlocks) {
    if (config.device(block) != "nvme") continue;
    std::string key = path_of(block, "nvme_path"), path = config.text(key);
    std::string what = path.empty() ? "" : slow_place(facts, path);
    if (what.empty()) continue;
    const PlaceOnDisk* place = place_of(facts, path);
    bool there = !place || place->within.empty();
    hits.add(config.place(key),
             there ? path + " " + what
                   : path + " does not exist; " + place->within + ", where it would be made, " + what);
  }
  if (config.device("offload_param") != "nvme" || !facts.machine.memory_bytes || !facts.ranks_per_node)
    return;
  double elements = config.number(path_of("offload_param", "max_in_cpu")).value_or(kDefaultInCpu);
  double bytes = elements * 2 * *facts.ranks_per_node;
  if (bytes <= *facts.machine.memory_bytes) return;
  hits.add(config.place(path_of("offload_param", "max_in_cpu")),
           "the cache in memory takes " + number_text(bytes / 1e9) + " GB a node, free are " +
               number_text(*facts.machine.memory_bytes / 1e9) + " GB");
}

void old_torch(const Facts& facts, const Config& config, Hits& hits) {
  if (!config.has(kFlow)) return;
  if (older(facts.torch, "2.1.0"))
    hits.add(config.place(kFlow), "ZenFlow needs torch 2.1; this is " + facts.torch);
  if (older(facts.deepspeed, "0.17.6"))
    hits.add(config.place(kFlow),
             "ZenFlow needs DeepSpeed 0.17.6; " + facts.deepspeed + " does not know the key");
}

void flow_offload(const Facts&, const Config& config, Hits& hits) {
  if (!zenflow(config) || config.device("offload_optimizer") == "cpu") return;
  hits.add(config.place(kFlow), "zenflow is set, but the optimizer is not offloaded to the CPU");
}

void flow_optimizer(const Facts& facts, const Config& config, Hits& hits) {
  if (!zenflow(config)) return;
  if (!config.has("optimizer"))
    hits.add(config.place("optimizer"), "zenflow is set, but there is no optimizer block");
  if (config.on("optimizer.params.torch_adam"))
    hits.add(config.place("optimizer.params.torch_adam"), "ZenFlow's AdamW does not take torch_adam");
  if (config.has("optimizer") && facts.client_optimizer && !facts.client_optimizer->empty())
    hits.add(facts.launch.script, "zenflow is set, but the script passes an optimizer of its own");
}

void flow_learning(const Facts&, const Config& config, Hits& hits) {
  if (!zenflow(config)) return;
  std::string top = std::string(kFlow) + ".topk_ratio", update = std::string(kFlow) + ".update_interval";
  auto ratio = config.number(top), interval = config.number(update);
  if (ratio && *ratio > 0 && *ratio < kSmallShare)
    hits.add(config.place(top),
             "only " + number_text(*ratio * 100) + " % of the gradient columns are applied each step");
  if (interval && *interval > kLongInterval)
    hits.add(config.place(update), "all other gradients wait for " + number_text(*interval) + " steps");
}

void flow_schedule(const Facts&, const Config& config, Hits& hits) {
  if (!zenflow(config)) return;
  std::string block = kFlow;
  std::string strategy = config.text(block + ".select_strategy");
  bool automatic = strategy.empty() || strategy == "auto";
  auto select = config.number(block + ".select_interval"), update = config.number(block + ".update_interval");
  if (automatic && select)
    hits.add(config.place(block + ".select_interval"),
             "select_interval is a number, but select_strategy is \"auto\" (its default)");
  if (!automatic && !select)
    hits.add(config.place(block + ".select_interval"),
             "select_strategy is \"" + strategy + "\", but select_interval is no number");
  if (!automatic && select && update && strategy == "step" && *select < *update)
    hits.add(config.place(block + ".select_interval"),
             "select_interval " + number_text(*select) + " is below update_interval " + number_text(*update));
  auto ratio = config.number(block + ".topk_ratio");
  if (ratio && (*ratio <= 0 || *ratio >= 1))
    hits.add(config.place(block + ".topk_ratio"),
             "topk_ratio is " + number_text(*ratio) + "; it must be between 0 and 1");
  auto steps = config.number("gradient_accumulation_steps");
  if (steps && update && *steps > 1 && *steps != *update) {
    hits.add(config.place("gradient_accumulation_steps"),
             "gradient_accumulation_steps is overwritten by update_interval " + number_text(*update), "",
             Severity::kRisk);
  }
}

}  // namespace

const Rules& zero_rules() {
  static const Rules rules = {
      {"12.7-1", Area::kConfig, Severity::kRisk, "stage, stage3_gather_16bit_weights_on_model_save",
       "stage 3, the key is not true, and the script, where it is known, calls what needs it",
       "the shards are not gathered by default, and the save only logs that",
       "Set \"stage3_gather_16bit_weights_on_model_save\": true, or convert the checkpoint with its "
       "zero_to_fp32.py.",
       "Did not save the model … because stage3_gather_16bit_weights_on_model_save is False",
       with_config<ungathered>},
      {"X-24", Area::kConfig, Severity::kSlow, "offload_param, offload_optimizer, stage",
       "the stage ignores the offload, or refuses its ratio",
       "offload of parameters, NVMe and ratio need stage 3", "Use stage 3, or drop the block.",
       "Partial offloading only supported for ZeRO Stage 3.", with_config<ignored_offload>},
      {"X-25", Area::kConfig, Severity::kWillFail, "device nvme in stage 3, nvme_path",
       "the path is missing or cannot be written", "nvme needs a directory",
       "Set nvme_path to a directory on a local NVMe disk.",
       "expected str, bytes or os.PathLike object, not NoneType", with_config<nvme_without_path>},
      {"12.6-5", Area::kConfig, Severity::kSlow, "nvme_path, the file system there, max_in_cpu, free memory",
       "the path is memory, a network or a rotating disk, or the cache does not fit",
       "NVMe offload pays only on a local NVMe disk",
       "Use a directory on a local NVMe disk; lower max_in_cpu.",
       "https://www.deepspeed.ai/docs/config-json/", with_config<nvme_place>},
      {"12.12-1", Area::kConfig, Severity::kWillFail, "zenflow, versions of torch and DeepSpeed",
       "torch below 2.1 or DeepSpeed below 0.17.6", "ZenFlow needs parts of newer versions",
       "Upgrade, or drop the key: plain ZeRO-Offload remains.",
       "Please use PyTorch 2.1 or later to enable ZenFlow", with_config<old_torch>},
      {"12.12-2", Area::kConfig, Severity::kWillFail, "zenflow, offload_optimizer.device",
       "the device is not cpu", "ZenFlow works on the offload path only",
       "Add \"offload_optimizer\": {\"device\": \"cpu\"}.", "Zenflow must be used with cpu offload",
       with_config<flow_offload>},
      {"12.12-3", Area::kConfig, Severity::kWillFail, "zenflow, the optimizer block",
       "there is none, it asks for torch_adam, or the script passes an optimizer",
       "ZenFlow copies optimizer.params into an AdamW of its own",
       "Write \"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": …}} into the config, without "
       "torch_adam.",
       "ZenFlowSelectiveAdamW() argument after ** must be a mapping, not NoneType",
       with_config<flow_optimizer>},
      {"12.12-4", Area::kConfig, Severity::kSlow, "topk_ratio, update_interval",
       "topk_ratio below 0.02 or update_interval above 16",
       "few gradients are applied each step, the rest late", "Raise topk_ratio or lower update_interval.",
       "https://www.deepspeed.ai/tutorials/zenflow/", with_config<flow_learning>},
      {"X-36", Area::kConfig, Severity::kWillFail,
       "select_strategy, select_interval, update_interval, topk_ratio", "they do not fit together",
       "the keys depend on each other: intervals are numbers only with a strategy that is not auto",
       "Set select_strategy, select_interval and update_interval together, select_interval not below "
       "update_interval.",
       "Select interval must be greater or equal to update interval", with_config<flow_schedule>},
  };
  return rules;
}

}  // namespace dshang::doctor
