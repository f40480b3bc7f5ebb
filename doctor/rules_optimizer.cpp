// Optimizer and scheduler.
#include "doctor/rule.h"

namespace dshang::doctor {
namespace {

const std::vector<std::string> kOwn = {"adagrad", "adam",  "adamw", "lamb", "muadam",
                                       "muadamw", "musgd", "lion",  "muon"};
const std::vector<std::string> kOwnBefore = {"onebitadam", "zerooneadam", "onebitlamb"};  // before 0.19.8
const std::vector<std::string> kTorch = {"Adadelta",   "Adafactor", "Adagrad", "Adam",  "AdamW",
                                         "SparseAdam", "Adamax",    "ASGD",    "SGD",   "RAdam",
                                         "Rprop",      "RMSprop",   "NAdam",   "LBFGS", "Muon"};
// runtime/zero/utils.py: ZERO_SUPPORTED_OPTIMIZERS.
const std::vector<std::string> kTested = {"Adam",
                                          "AdamW",
                                          "Adagrad",
                                          "FusedAdam",
                                          "DeepSpeedCPUAdam",
                                          "ZenFlowCPUAdam",
                                          "DeepSpeedCPUAdagrad",
                                          "DeepSpeedCPULion",
                                          "FusedLion",
                                          "MuonWithAuxAdam"};
const std::vector<std::string> kSchedules = {"LRRangeTest", "OneCycle", "WarmupLR", "WarmupDecayLR",
                                             "WarmupCosineLR"};
const std::vector<std::string> kTorchSchedules = {"LambdaLR",
                                                  "MultiplicativeLR",
                                                  "StepLR",
                                                  "MultiStepLR",
                                                  "ConstantLR",
                                                  "LinearLR",
                                                  "ExponentialLR",
                                                  "SequentialLR",
                                                  "CosineAnnealingLR",
                                                  "ChainedScheduler",
                                                  "ReduceLROnPlateau",
                                                  "CyclicLR",
                                                  "CosineAnnealingWarmRestarts",
                                                  "OneCycleLR",
                                                  "PolynomialLR"};

bool client_passes(const Facts& facts) { return facts.client_optimizer && !facts.client_optimizer->empty(); }

void offload_foreign(const Facts& facts, const Config& config, Hits& hits) {
  const Json* forced = config.at("zero_force_ds_cpu_optimizer");
  if (facts.trainer == Trainer::kHf || config.has("optimizer") || config.has("zero_optimization.zenflow"))
    return;
  if (config.device("offload_optimizer") == "none" || config.stage() == 0) return;
  if (forced && *forced == false) return;
  if (facts.client_optimizer && (*facts.client_optimizer).find("DeepSpeedCPU") != std::string::npos) return;
  bool known = facts.trainer == Trainer::kPlain;
  hits.add(config.place("zero_optimization.offload_optimizer"),
           "the optimizer is offloaded, but there is no optimizer block: DeepSpeed refuses any other than "
           "DeepSpeedCPUAdam from the script",
           "", known ? std::nullopt : std::optional(Severity::kRisk));
}

void unknown_optimizer(const Facts& facts, const Config& config, Hits& hits) {
  std::string type = config.text("optimizer.type");
  bool old = older(facts.deepspeed, "0.19.6") && among(lower(type), kOwnBefore);
  if (!type.empty() && !among(lower(type), kOwn) && !among(type, kTorch) && !old)
    hits.add(config.place("optimizer.type"),
             "there is no optimizer '" + type + "' in DeepSpeed nor in torch.optim");
  bool none = facts.client_optimizer && facts.client_optimizer->empty() && !config.has("optimizer");
  if (none && (config.stage() == 1 || config.stage() == 2))
    hits.add(config.path, "ZeRO stage " + std::to_string(config.stage()) +
                              " without an optimizer, neither in the config nor in the script");
}

void untested(const Facts& facts, const Config& config, Hits& hits) {
  if (config.stage() == 0 || config.on("zero_allow_untested_optimizer")) return;
  std::string type = client_passes(facts) ? *facts.client_optimizer : config.text("optimizer.type");
  if (!client_passes(facts) && (among(lower(type), kOwn) || !among(type, kTorch))) return;
  if (type.empty() || among(type, kTested) || type == "Muon") return;
  hits.add(
      client_passes(facts) && !facts.launch.script.empty() ? facts.launch.script : config.place("optimizer"),
      "ZeRO has not been tested with " + type + " and refuses it");
}

void twice(const Facts& facts, const Config& config, Hits& hits) {
  if (!client_passes(facts) || !config.has("optimizer") || *facts.client_optimizer == "DummyOptim") return;
  if (config.has("zero_optimization.zenflow")) return;
  bool hf = facts.trainer == Trainer::kHf;
  hits.add(
      config.place("optimizer"),
      "the config has an optimizer block, and the script passes " + *facts.client_optimizer +
          (hf ? ": Accelerate refuses that" : ": the script's wins, the block is ignored without a word"),
      "", hf ? Severity::kWillFail : Severity::kWrongResult);
}

void foreign_muon(const Facts& facts, const Config& config, Hits& hits) {
  if (!client_passes(facts) || lower(*facts.client_optimizer) != "muon" || config.stage() == 0) return;
  hits.add(facts.launch.script.empty() ? config.path : facts.launch.script,
           "the script passes torch's Muon, which sees flat ZeRO shards instead of matrices");
}

void schedule(const Facts&, const Config& config, Hits& hits) {
  std::string type = config.text("scheduler.type");
  if (type.empty()) return;
  if (!among(type, kSchedules) && !among(type, kTorchSchedules)) {
    std::string hint;
    for (const std::string& one : kSchedules) {
      if (lower(one) == lower(type)) hint = "; did you mean " + one + "?";
    }
    return hits.add(config.place("scheduler.type"), "there is no scheduler '" + type + "'" + hint);
  }
  bool needs_total = type == "WarmupDecayLR" || type == "WarmupCosineLR";
  if (needs_total && !config.has("scheduler.params.total_num_steps"))
    hits.add(config.place("scheduler.params"), type + " needs total_num_steps");
}

void muon_zero3(const Facts&, const Config& config, Hits& hits) {
  if (config.optimizer() != "muon" || config.stage() != 3) return;
  const Json* scatter = config.at("zero_optimization.reduce_scatter");
  if (!scatter || truth(*scatter) != false)
    hits.add(config.place("zero_optimization.reduce_scatter"),
             "Muon in stage 3 needs reduce_scatter false; its default is true");
  if (config.on("zero_optimization.zero_quantized_gradients"))
    hits.add(config.place("zero_optimization.zero_quantized_gradients"),
             "Muon needs whole gradients, no quantized ones");
}

void clip_in_params(const Facts&, const Config& config, Hits& hits) {
  if (config.has("optimizer.params.max_grad_norm"))
    hits.add(config.place("optimizer.params.max_grad_norm"),
             "max_grad_norm is no parameter of the optimizer");
}

void muon_embeddings(const Facts& facts, const Config& config, Hits& hits) {
  if (config.optimizer() != "muon" || !older(facts.deepspeed, "0.18.5")) return;
  hits.add(config.place("optimizer.type"),
           "DeepSpeed " + facts.deepspeed + " applies Muon to embeddings and the output layer too");
}

}  // namespace

const Rules& optimizer_rules() {
  static const Rules rules = {
      {"X-27", Area::kConfig, Severity::kWillFail,
       "offload_optimizer, the optimizer block, the script's optimizer",
       "offload without a block, and no DeepSpeedCPUAdam from the script",
       "a foreign optimizer on the CPU is slow and refused",
       "Write the optimizer block, pass DeepSpeedCPUAdam, or set \"zero_force_ds_cpu_optimizer\": false.",
       "You are using ZeRO-Offload with a client provided optimizer", with_config<offload_foreign>},
      {"X-30", Area::kConfig, Severity::kWillFail, "optimizer.type, the script's optimizer",
       "an unknown type, or none at all in stage 1 or 2", "ZeRO needs an optimizer that exists",
       "Use adam, adamw, lion, lamb, adagrad, muon, muadam, muadamw, musgd or a class of torch.optim.",
       "… is not a supported DeepSpeed Optimizer; zero stage 2 requires an optimizer",
       with_config<unknown_optimizer>},
      {"X-29", Area::kConfig, Severity::kWillFail, "optimizer class with ZeRO", "ZeRO does not list it",
       "ZeRO takes optimizers of its list only, unless told",
       "Set \"zero_allow_untested_optimizer\": true if the optimizer works element by element.",
       "You are using an untested ZeRO Optimizer", with_config<untested>},
      {"X-20", Area::kConfig, Severity::kWrongResult, "the optimizer block and the script's optimizer",
       "both are there", "two sources", "Remove one of them.",
       "You cannot specify an optimizer in the config file and in the code at the same time",
       with_config<twice>},
      {"12.13-3", Area::kConfig, Severity::kWrongResult, "the script's optimizer",
       "torch.optim.Muon under ZeRO", "orthogonalisation needs whole matrices",
       "Use \"optimizer\": {\"type\": \"Muon\", \"params\": {\"lr\": …}} in the config.",
       "https://www.deepspeed.ai/docs/config-json/", with_config<foreign_muon>},
      {"X-34", Area::kConfig, Severity::kWillFail, "scheduler.type, scheduler.params",
       "an unknown name (letters' case counts), or total_num_steps is missing",
       "the scheduler cannot be made",
       "Use LRRangeTest, OneCycle, WarmupLR, WarmupDecayLR or WarmupCosineLR; the last two with "
       "total_num_steps.",
       "DeepSpeed does not recognize LR scheduler", with_config<schedule>},
      {"X-35", Area::kConfig, Severity::kWillFail, "optimizer muon in stage 3, reduce_scatter",
       "reduce_scatter is not false", "Muon needs whole gradients",
       "Set \"reduce_scatter\": false in zero_optimization.",
       "Muon and reduce scatter cannot be used together", with_config<muon_zero3>},
      {"X-37", Area::kConfig, Severity::kWillFail, "optimizer.params.max_grad_norm", "it is there",
       "the wrong place", "Use \"gradient_clipping\" at the top level.",
       "'max_grad_norm' is not supported as an optimizer parameter", with_config<clip_in_params>},
      {"12.13-1", Area::kConfig, Severity::kWrongResult, "optimizer muon, version of DeepSpeed",
       "DeepSpeed before 0.18.5", "old versions tag every parameter of two or more dimensions",
       "Upgrade DeepSpeed, or set param.use_muon = False on embeddings and lm_head before initialize.",
       "https://github.com/deepspeedai/DeepSpeed", with_config<muon_embeddings>},
  };
  return rules;
}

}  // namespace dshang::doctor
