// What optimizer and scheduler blocks hand to the class that they name.
#include <algorithm>
#include <cmath>
#include <map>

#include "doctor/rule.h"
#include "doctor/schema.h"

namespace dshang::doctor {
namespace {

// Of FusedAdam, DeepSpeedCPUAdam, torch.optim.AdamW, and what the engine takes out before.
const std::vector<std::string> kOfAdam = {"lr",
                                          "betas",
                                          "eps",
                                          "weight_decay",
                                          "bias_correction",
                                          "amsgrad",
                                          "adam_w_mode",
                                          "adamw_mode",
                                          "set_grad_none",
                                          "torch_adam",
                                          "fp32_optimizer_states",
                                          "foreach",
                                          "maximize",
                                          "capturable",
                                          "differentiable",
                                          "fused",
                                          "max_grad_norm"};
// runtime/lr_schedules.py, of all versions.
const std::vector<std::string> kOfWarmup = {"warmup_min_lr", "warmup_max_lr",       "warmup_num_steps",
                                            "warmup_type",   "total_num_steps",     "warmup_min_ratio",
                                            "cos_min_ratio", "last_batch_iteration"};
const std::vector<std::string> kOfOptimizers = {"lr", "betas", "eps", "weight_decay", "momentum"};

// What other libraries call them.
const std::map<std::string, std::string> kElsewhere = {
    {"learning_rate", "lr"},         {"beta1", "betas"},          {"beta2", "betas"},
    {"adam_beta1", "betas"},         {"adam_beta2", "betas"},     {"epsilon", "eps"},
    {"adam_epsilon", "eps"},         {"wd", "weight_decay"},      {"warmup_steps", "warmup_num_steps"},
    {"max_lr", "warmup_max_lr"},     {"min_lr", "warmup_min_lr"}, {"total_steps", "total_num_steps"},
    {"max_steps", "total_num_steps"}};

std::string meant_by(const std::string& name, const std::vector<std::string>& known) {
  auto elsewhere = kElsewhere.find(name);
  if (elsewhere != kElsewhere.end() && among(elsewhere->second, known)) return elsewhere->second;
  return nearest(name, known);
}

void names_in(const Config& config, const std::string& path, const std::vector<std::string>& known,
              const std::string& type, Hits& hits) {
  const Json* params = config.at(path);
  if (!params || !params->is_object()) return;
  for (const auto& [name, value] : params->items()) {
    if (among(name, known)) continue;
    std::string near = meant_by(name, known);
    hits.add(
        config.place(path + "." + name),
        type + " takes no '" + shortened(name) + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"),
        "", near.empty() ? std::optional(Severity::kRisk) : std::nullopt);
  }
}

// Beside `type`, where nobody reads them.
void beside_type(const Config& config, const std::string& block, const std::vector<std::string>& known,
                 Hits& hits) {
  const Json* there = config.at(block);
  if (!there || !there->is_object() || !there->contains("type")) return;
  for (const auto& [name, value] : there->items()) {
    auto elsewhere = kElsewhere.find(name);
    std::string own = elsewhere == kElsewhere.end() ? name : elsewhere->second;
    if (!among(own, known) || config.has(block + ".params." + own)) continue;
    hits.add(config.place(block + "." + name),
             name + " stands beside type and is not read: the default holds",
             "Move it into " + block + ".params.", Severity::kWrongResult);
  }
}

void texts_for_numbers(const Config& config, const std::string& path, const std::vector<std::string>& names,
                       Hits& hits) {
  for (const std::string& name : names) {
    const Json* value = config.at(path + "." + name);
    if (!value || !value->is_string() || *value == "auto") continue;
    hits.add(config.place(path + "." + name),
             name + " is the text \"" + shortened(value->get<std::string>()) + "\"; it must be a number",
             "Write the number without quotes.");
  }
}

void of_classes(const Facts&, const Config& config, Hits& hits) {
  std::string type = config.text("optimizer.type"), schedule = config.text("scheduler.type");
  bool adam = lower(type) == "adam" || lower(type) == "adamw";
  bool warmup = schedule == "WarmupLR" || schedule == "WarmupDecayLR" || schedule == "WarmupCosineLR";
  if (adam) names_in(config, "optimizer.params", kOfAdam, type, hits);
  if (warmup) names_in(config, "scheduler.params", kOfWarmup, schedule, hits);
  beside_type(config, "optimizer", kOfOptimizers, hits);
  if (warmup) beside_type(config, "scheduler", kOfWarmup, hits);
  texts_for_numbers(config, "optimizer.params", {"lr", "eps", "weight_decay", "momentum"}, hits);
  if (warmup)
    texts_for_numbers(config, "scheduler.params",
                      {"warmup_min_lr", "warmup_max_lr", "warmup_num_steps", "total_num_steps"}, hits);
}

void secondary_partition(const Facts& facts, const Config& config, Hits& hits) {
  auto size = config.number("zero_optimization.zero_hpz_partition_size");
  if (!size || !facts.world_size || *size < 2 || *size >= *facts.world_size || config.stage() != 3) return;
  if (std::fmod(*facts.world_size, *size) == 0) return;
  hits.add(config.place("zero_optimization.zero_hpz_partition_size"),
           "zero_hpz_partition_size is " + number_text(*size) + ", which does not divide the " +
               std::to_string(*facts.world_size) + " ranks");
}

}  // namespace

const Rules& parameter_rules() {
  static const Rules rules = {
      {"D-04", Area::kConfig, Severity::kWillFail,
       "optimizer and scheduler: names and types in params, names beside type",
       "a name that the class does not take, a text for a number, or a parameter outside params",
       "params go to the class as they are: it refuses names that it does not know",
       "Correct the name: lr, betas, eps, weight_decay; warmup_min_lr, warmup_max_lr, warmup_num_steps, "
       "total_num_steps.",
       "TypeError: __init__() got an unexpected keyword argument; "
       "https://www.deepspeed.ai/docs/config-json/#optimizer-parameters",
       with_config<of_classes>},
      {"D-05", Area::kConfig, Severity::kWillFail, "zero_hpz_partition_size, number of ranks",
       "it does not divide the ranks", "the secondary partition is made of groups of equal size",
       "Use the number of GPUs of a node.", "AssertionError: … is not divisible by …",
       with_config<secondary_partition>},
  };
  return rules;
}

}  // namespace dshang::doctor
