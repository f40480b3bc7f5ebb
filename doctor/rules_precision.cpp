// Precision, loss scale, clipping, timers, backward.
#include <cmath>
#include <regex>

#include "doctor/lines.h"
#include "doctor/rule.h"

namespace dshang::doctor {
namespace {

constexpr double kScalePower = 16;  // the default of fp16.initial_scale_power
constexpr double kNoFloat = 1024;   // 2 to that power is no double

bool bf16(const Config& config) { return config.on("bf16.enabled") || config.on("bfloat16.enabled"); }

void both(const Facts&, const Config& config, Hits& hits) {
  if (!config.on("fp16.enabled") || !bf16(config)) return;
  hits.add(config.place("fp16.enabled"), "fp16 and bf16 are both switched on");
}

void unclipped(const Facts& facts, const Config& config, Hits& hits) {
  if (!config.on("fp16.enabled")) return;
  auto clipping = config.number("gradient_clipping");
  if (clipping && *clipping == 0)
    return hits.add(config.place("gradient_clipping"),
                    "fp16 with gradient_clipping 0: nothing bounds an outlier's step");
  if (!config.has("gradient_clipping") && older(facts.deepspeed, "0.19.3")) {
    hits.add(config.place("fp16"), "fp16 without gradient_clipping: its default is 0 (off) in DeepSpeed " +
                                       facts.deepspeed + ", 1.0 only in newer ones");
  }
}

void scale_power(const Facts&, const Config& config, Hits& hits) {
  if (!config.on("fp16.enabled") || config.number("fp16.loss_scale").value_or(0) != 0) return;
  auto power = config.number("fp16.initial_scale_power");
  if (!power || *power <= kScalePower) return;
  if (*power >= kNoFloat) {
    double meant = std::log2(*power);
    return hits.add(config.place("fp16.initial_scale_power"),
                    "the loss scale is to start at 2^" + number_text(*power) + ", which fits into no float",
                    "Give the power, not the scale: " +
                        number_text(meant == std::floor(meant) ? meant : kScalePower) + ".",
                    Severity::kWillFail);
  }
  hits.add(config.place("fp16.initial_scale_power"), "the loss scale starts at 2^" + number_text(*power) +
                                                         ": every halving of it costs a skipped step");
}

void timers(const Facts&, const Config& config, Hits& hits) {
  const Json* clock = config.at("wall_clock_breakdown");
  if (clock && *clock == true)
    hits.add(config.place("wall_clock_breakdown"),
             "wall_clock_breakdown is on: its timers synchronise the GPU");
  if (config.on("flops_profiler.enabled"))
    hits.add(config.place("flops_profiler.enabled"), "flops_profiler switches wall_clock_breakdown on");
}

void backward_of_loss(const Facts& facts, const Config& config, Hits& hits) {
  if (config.stage() != 0 || (!bf16(config) && !config.on("fp16.enabled"))) return;
  if (facts.trainer == Trainer::kHf) return;
  static const std::regex call("^[^#]*\\bloss\\.backward\\(");
  if (!any_line(facts.launch.script_text, call)) return;
  hits.add(facts.launch.script,
           "the script calls loss.backward(), which DeepSpeed refuses in ZeRO stage 0 with 16-bit weights");
}

}  // namespace

const Rules& precision_rules() {
  static const Rules rules = {
      {"12.3-2", Area::kConfig, Severity::kWillFail, "fp16.enabled, bf16.enabled, bfloat16.enabled",
       "two are on", "two precisions are chosen", "Remove one; keep bf16 on Ampere or newer.",
       "AssertionError: bfloat16 and fp16 modes cannot be simultaneously enabled", with_config<both>},
      {"12.5-1", Area::kConfig, Severity::kRisk,
       "fp16.enabled, gradient_clipping (default 1.0 since 0.19.5, before 0)",
       "fp16 is on and clipping is off",
       "one bad batch may take fp16 weights out of range: the loss turns NaN",
       "Set \"gradient_clipping\": 1.0, or use bf16.", "loss: nan after some steps", with_config<unclipped>},
      {"12.5-4", Area::kConfig, Severity::kSlow, "fp16.initial_scale_power (default 16), fp16.loss_scale",
       "the power is above the default and the scale is dynamic",
       "a higher start means more skipped steps until the scale fits; it cures no overflow",
       "Leave initial_scale_power at 16 or lower it; if overflows go on, use bf16.",
       "[deepspeed] OVERFLOW! … Skipping step", with_config<scale_power>},
      {"12.1-4", Area::kConfig, Severity::kAdvice, "wall_clock_breakdown, flops_profiler.enabled",
       "one is on", "each timer waits for the device", "Use it for a few steps, then switch it off.",
       "https://www.deepspeed.ai/docs/config-json/", with_config<timers>},
      {"X-49", Area::kConfig, Severity::kWillFail, "the script's text, stage and precision",
       "loss.backward() in stage 0 with bf16 or fp16",
       "loss scaling and the reduction of gradients hang on the engine", "Call engine.backward(loss).",
       "Direct calls to tensor.backward() are not supported in this configuration",
       with_config<backward_of_loss>},
  };
  return rules;
}

}  // namespace dshang::doctor
