// The batch sizes, "auto", and what Hugging Face's arguments say beside the config.
#include <cmath>

#include "doctor/rule.h"

namespace dshang::doctor {
namespace {

constexpr const char* kTotal = "train_batch_size";
constexpr const char* kMicro = "train_micro_batch_size_per_gpu";
constexpr const char* kSteps = "gradient_accumulation_steps";
constexpr const char* kBatchKeys[] = {kTotal, kMicro, kSteps};

std::string product(double micro, double steps, double ranks) {
  return number_text(micro) + " * " + number_text(steps) + " * " + number_text(ranks) + " = " +
         number_text(micro * steps * ranks);
}

// A key that is neither absent nor a number is another rule's.
bool all_numbers(const Config& config) {
  for (const char* key : kBatchKeys) {
    const Json* value = config.at(key);
    if (value && !value->is_number() && !value->is_null()) return false;
  }
  return true;
}

bool not_positive(const Config& config, Hits& hits) {
  bool found = false;
  for (const char* key : kBatchKeys) {
    auto value = config.number(key);
    if (!value || *value > 0) continue;
    hits.add(config.place(key),
             std::string(key) + " is " + number_text(*value) + "; it must be greater than 0");
    found = true;
  }
  return found;
}

void whole_batch(const Config& config, double total, std::optional<double> micro, std::optional<double> steps,
                 double ranks, const std::string& said_ranks, Hits& hits) {
  std::string text = std::string(kTotal) + " is " + number_text(total);
  if (micro && steps) {
    if (total == *micro * *steps * ranks) return;
    text += ", but micro batch * accumulation * " + said_ranks + " is " + product(*micro, *steps, ranks);
  } else {
    double share = micro ? *micro * ranks : steps ? *steps * ranks : ranks;
    if (std::fmod(total, share) == 0) return;
    const char* by = micro ? "micro batch * " : steps ? "accumulation * " : "";
    text += ", which is no multiple of " + std::string(by) + said_ranks + " = " + number_text(share);
  }
  hits.add(config.place(kTotal), text);
}

void batch(const Facts& facts, const Config& config, Hits& hits) {
  auto total = config.number(kTotal), micro = config.number(kMicro), steps = config.number(kSteps);
  if (not_positive(config, hits)) return;
  if (!all_numbers(config)) return;
  if (!total && !micro) {
    return hits.add(config.path, std::string("neither ") + kTotal + " nor " + kMicro + " is given");
  }
  if (!total) return;
  auto ranks = facts.data_parallel();
  std::string said = "data-parallel ranks";
  if (!ranks) said = "any number of ranks";
  if (ranks) return whole_batch(config, *total, micro, steps, *ranks, said, hits);
  if (micro && std::fmod(*total, *micro * steps.value_or(1)) != 0)
    whole_batch(config, *total, micro, steps, 1, said, hits);
}

// "auto" inside the block `path`.
void autos_in(const Config& config, const std::string& path, std::vector<std::string>* found) {
  const Json* block = config.at(path);
  if (!block || !block->is_object()) return;
  for (const auto& [name, value] : block->items()) {
    if (value == "auto") found->push_back(path + "." + name);
  }
}

std::vector<std::string> autos_that_fail(const Config& config) {
  std::vector<std::string> found;
  for (const char* key : {kTotal, kMicro, kSteps, "gradient_clipping"}) {
    if (config.is_auto(key)) found.emplace_back(key);
  }
  autos_in(config, "optimizer.params", &found);
  autos_in(config, "scheduler.params", &found);
  return found;
}

std::vector<std::string> autos_that_switch_off(const Config& config) {
  std::vector<std::string> found;
  for (const char* key :
       {"fp16.enabled", "bf16.enabled", "bfloat16.enabled", "zero_optimization.stage",
        "zero_optimization.offload_optimizer.device", "zero_optimization.offload_param.device"}) {
    if (config.is_auto(key)) found.emplace_back(key);
  }
  return found;
}

std::string listed_keys(const std::vector<std::string>& keys) {
  std::string text;
  for (const std::string& key : keys) text += (text.empty() ? "" : ", ") + key;
  return text + (keys.size() > 1 ? " are" : " is");
}

void auto_left(const Facts& facts, const Config& config, Hits& hits) {
  if (facts.trainer == Trainer::kHf) return;
  bool plain = facts.trainer == Trainer::kPlain;
  std::string condition = plain ? "" : "if your script calls deepspeed.initialize itself: ";
  auto severity = [&](Severity own) { return plain ? own : Severity::kAdvice; };
  auto say = [&](const std::vector<std::string>& keys, const std::string& effect, Severity own) {
    if (keys.empty()) return;
    hits.add(keys.size() > 1 ? config.path : config.place(keys.front()),
             condition + listed_keys(keys) + " \"auto\", which plain DeepSpeed takes for " + effect, "",
             severity(own));
    condition.clear();  // once for all
  };
  std::vector<std::string> off, nothing;
  for (const std::string& key : autos_that_switch_off(config))
    (key.ends_with("enabled") ? off : nothing).push_back(key);
  say(autos_that_fail(config), "a text", Severity::kWillFail);
  say(off, "off: the model trains in fp32", Severity::kWrongResult);
  say(nothing, "its default: nothing", Severity::kWrongResult);
}

// A key of the config and the argument of Hugging Face that must say the same.
struct Pair {
  const char* key;
  const char* argument;
};

constexpr Pair kPairs[] = {
    {kMicro, "per_device_train_batch_size"},
    {kSteps, "gradient_accumulation_steps"},
    {"gradient_clipping", "max_grad_norm"},
    {"optimizer.params.lr", "learning_rate"},
    {"optimizer.params.eps", "adam_epsilon"},
    {"optimizer.params.weight_decay", "weight_decay"},
    {"scheduler.params.warmup_max_lr", "learning_rate"},
    {"scheduler.params.warmup_num_steps", "warmup_steps"},
    {"scheduler.params.total_num_steps", "max_steps"},
    {"fp16.enabled", "fp16"},
    {"bf16.enabled", "bf16"},
};

// What the Trainer compares the key with; null where that is not known.
Json argument_of(const Facts& facts, const Pair& pair) {
  auto get = [&](const char* name) { return facts.hf.is_object() ? facts.hf.value(name, Json()) : Json(); };
  Json value = get(pair.argument);
  std::string name = pair.argument;
  bool unset = value.is_number() && value.get<double>() <= 0;  // computed by the Trainer
  if (unset && (name == "warmup_steps" || name == "max_steps")) return Json();
  if (value.is_boolean() && value == false && get((name + "_full_eval").c_str()) == true) return true;
  return value;
}

Json whole_batch_of(const Facts& facts) {
  if (!facts.world_size || !facts.hf.is_object()) return Json();
  Json micro = facts.hf.value("per_device_train_batch_size", Json());
  Json steps = facts.hf.value("gradient_accumulation_steps", Json());
  if (!micro.is_number() || !steps.is_number()) return Json();
  return micro.get<double>() * steps.get<double>() * *facts.world_size;
}

void compare(const Config& config, const std::string& key, const Json& argument, const std::string& name,
             Hits& hits) {
  const Json* value = config.at(key);
  if (!value || value->is_null() || *value == "auto" || argument.is_null() || *value == argument) return;
  std::string told = argument.is_number() ? number_text(argument.get<double>()) : argument.dump();
  hits.add(config.place(key), key + " is " + value->dump() + ", Hugging Face's " + name + " is " + told);
}

void mismatch(const Facts& facts, const Config& config, Hits& hits) {
  if (facts.trainer != Trainer::kHf) return;
  for (const Pair& pair : kPairs) compare(config, pair.key, argument_of(facts, pair), pair.argument, hits);
  compare(config, kTotal, whole_batch_of(facts), "total batch size", hits);
  Json first = facts.hf.is_object() ? facts.hf.value("adam_beta1", Json()) : Json();
  Json second = facts.hf.is_object() ? facts.hf.value("adam_beta2", Json()) : Json();
  if (!first.is_null() && !second.is_null())
    compare(config, "optimizer.params.betas", Json::array({first, second}), "adam_beta1 and adam_beta2",
            hits);
}

}  // namespace

const Rules& batch_rules() {
  static const Rules rules = {
      {"12.3-1", Area::kConfig, Severity::kWillFail,
       "train_batch_size, train_micro_batch_size_per_gpu, gradient_accumulation_steps, number of ranks",
       "the product does not hold, both sizes are missing, or one is not positive",
       "train_batch_size must be micro batch * accumulation * data-parallel ranks",
       "Give train_micro_batch_size_per_gpu and gradient_accumulation_steps only; DeepSpeed computes "
       "train_batch_size.",
       "AssertionError: Check batch related parameters", with_config<batch>},
      {"X-05", Area::kConfig, Severity::kWillFail, "values \"auto\", who calls deepspeed.initialize",
       "\"auto\" where plain DeepSpeed fails on it, or takes it for off",
       "only Hugging Face's Trainer and Accelerate replace \"auto\"", "Write numbers, true or false.",
       "'>' not supported between instances of 'str' and 'int'", with_config<auto_left>},
      {"X-04", Area::kConfig, Severity::kWillFail, "the config beside Hugging Face's TrainingArguments",
       "a value differs", "both say it, differently", "Set the key in the config to \"auto\".",
       "Please correct the following DeepSpeed config values that mismatch TrainingArguments values; "
       "huggingface/transformers#29348",
       with_config<mismatch>},
  };
  return rules;
}

}  // namespace dshang::doctor
