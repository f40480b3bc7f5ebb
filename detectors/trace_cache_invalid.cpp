// trace-cache-invalid: DeepSpeed's ZeRO-3 keeps losing its recorded order of modules (trace), so that it
// neither prefetches nor bundles gathers: a silent slow-down, not a hang.
//
// A trace that breaks costs two passes: one without a trace (INVALID), one that records a new one (RECORD);
// only with the third is it COMPLETE again.  Breaks are harmless where training and evaluation (or a pass
// without backward) take turns, which DeepSpeed 0.15.4 and later do not tell apart: those are left out.  So
// is what happens once or rarely.  Without the probe the same is read from the calls.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>

#include "core/job/site_policy.h"
#include "detectors/known_facts.h"
#include "detectors/trace_walk.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

constexpr std::size_t kBreaks = 3;     // of one rank, in training
constexpr double kShareOfSteps = 0.1;  // of the steps since the first break that were not COMPLETE throughout
constexpr double kPassesPerBreak = 2;
constexpr std::size_t kStepsToCompare = 3;
constexpr std::size_t kFramesShown = 3;
constexpr std::size_t kFirstSteps = 2;  // not compared: everything is slow in them

// Enough breaks, in different steps, that cost a share of the steps.
bool keeps_breaking(const RankTrace& trace) {
  std::set<std::int64_t> steps;
  for (const TraceBreak& b : trace.breaks) steps.insert(b.step);
  if (steps.size() < kBreaks || trace.steps.empty()) return false;
  double since = static_cast<double>(trace.steps.back().number - *steps.begin() + 1);
  return static_cast<double>(steps.size()) * kPassesPerBreak >= kShareOfSteps * since;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Cost {
  std::vector<double> seconds, gathers;
};

// "steps with a complete trace: 0.12 s and 4 gathers (median of 9); the others: 0.31 s and 22 gathers (median
// of 14)"
std::string cost_text(const std::vector<RankTrace>& traces, double* slower) {
  Cost good, bad;
  for (const RankTrace& trace : traces) {
    for (std::size_t i = kFirstSteps; i + 1 < trace.steps.size(); ++i) {  // the last is not over
      Cost& cost = trace.steps[i].complete ? good : bad;
      cost.seconds.push_back(trace.steps[i].seconds);
      cost.gathers.push_back(static_cast<double>(trace.steps[i].gathers));
    }
  }
  auto say = [](const Cost& cost) {
    return std::to_string(static_cast<long>(median(cost.gathers))) + " gathers and " +
           std::to_string(static_cast<long>(median(cost.seconds) * 1000)) + " ms (median of " +
           std::to_string(cost.seconds.size()) + ")";
  };
  if (bad.seconds.size() < kStepsToCompare) return {};
  if (good.seconds.size() < kStepsToCompare) {
    return "no step had a complete trace to compare with; steps take " + say(bad);
  }
  *slower = median(good.seconds) > 0 ? median(bad.seconds) / median(good.seconds) : 0;
  return "a step with a complete trace takes " + say(good) + ", the others " + say(bad);
}

// "model.py:24 forward, called at model.py:46 adapt": the module's own line may be that of many others.
std::string way_to(const JobView& view, job::SiteId site) {
  const job::Names& names = view.names();
  std::string text;
  std::size_t shown = 0;
  for (const job::FrameName& frame : names.site(site).frames) {
    std::string_view file = names.text(frame.file);
    job::FrameOwner owner = job::frame_owner(file);
    if (owner != job::FrameOwner::kUser && owner != job::FrameOwner::kLibrary) continue;
    file = file.substr(file.rfind('/') + 1);
    if (shown) text += shown == 1 ? ", called at " : ", ";
    text += std::string(file) + ":" + std::to_string(frame.line);
    if (frame.function) text += " " + names.text(frame.function);
    if (++shown == kFramesShown) break;
  }
  return text;
}

std::string cause(const JobView& view, const TraceBreak& b) {
  if (b.gathers_at) return "first gathers out of order come from " + way_to(view, b.gathers_at);
  if (b.got.empty()) return "";
  std::string at = b.place ? view.names().place_text(b.place) : "";
  std::string text = b.got + " came " +
                     (b.expected == "-" ? "after the trace had ended" : "where the trace has " + b.expected);
  return at.empty() ? text : text + " (" + at + ")";
}

// The breaks by what broke, the most frequent first.
std::vector<std::pair<std::string, std::size_t>> causes(const JobView& view,
                                                        const std::vector<RankTrace>& traces) {
  std::map<std::string, std::size_t> counts;
  for (const RankTrace& trace : traces) {
    for (const TraceBreak& b : trace.breaks) {
      std::string text = cause(view, b);
      if (!text.empty()) ++counts[text];
    }
  }
  std::vector<std::pair<std::string, std::size_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

// Whether the DeepSpeed met is at least this version; an unknown one counts as new.
bool at_least(const std::string& version, int major, int minor, int patch) {
  int a = 0, b = 0, c = 0;
  if (std::sscanf(version.c_str(), "%d.%d.%d", &a, &b, &c) < 2) return true;
  return std::tie(a, b, c) >= std::tie(major, minor, patch);
}

std::vector<std::string> remedies(const std::string& version, bool on_some_ranks) {
  std::vector<std::string> fix;
  if (on_some_ranks) {
    fix.push_back(
        "Let all ranks decide alike: a forward that depends on the rank or on its own batch also makes ranks "
        "wait for "
        "each other sooner or later; move what one rank does alone out of the forward.");
  }
  fix.push_back(
      "Run the modules in the same order in every forward, whatever the batch: run all branches and weigh "
      "their results (times 0 "
      "where one is not wanted) instead of choosing or reordering modules.");
  if (at_least(version, 0, 13, 0)) {
    fix.push_back(
        "If the choice is inside one block (experts, adapters), make that block a leaf: "
        "deepspeed.utils.set_z3_leaf_modules(model, [BlockClass]) gathers it as one, and its inside is not "
        "traced.");
  }
  if (at_least(version, 0, 16, 4)) {
    fix.push_back("\"zero_optimization\": {\"log_trace_cache_warnings\": true} prints each break on rank 0.");
  }
  fix.push_back(
      "A module that uses the parameter of another one registers it: "
      "deepspeed.zero.register_external_parameter(module, parameter).");
  fix.push_back("If the order must vary and the model fits, ZeRO stage 2 has no trace.");
  return fix;
}

void run(Work& work) {
  const JobView& view = work.view;
  std::vector<RankTrace> breaking;
  std::vector<Rank> ranks, steady;
  for (const job::RankView* rank : real_ranks(view)) {
    RankTrace trace = trace_of(view, *rank);
    if (!keeps_breaking(trace)) {
      if (!trace.steps.empty()) steady.push_back(rank->rank);
      continue;
    }
    ranks.push_back(rank->rank);
    breaking.push_back(std::move(trace));
  }
  if (breaking.empty()) return;
  Finding f;
  f.type = "trace-cache-invalid";
  f.severity = Severity::kWarning;
  if (steady.size() > ranks.size()) f.suspects = ranks;
  std::vector<std::pair<std::string, std::size_t>> why = causes(view, breaking);
  const TraceBreak* first = &breaking[0].breaks[0];
  std::size_t total = 0;
  for (const RankTrace& trace : breaking) {
    total += trace.breaks.size();
    if (trace.breaks[0].time_ns < first->time_ns) first = &trace.breaks[0];
  }
  bool counted =
      std::any_of(breaking.begin(), breaking.end(), [](const RankTrace& t) { return t.counted_steps; });
  if (first->step != job::kNoStep && !counted) f.step = first->step;
  f.at = view.seconds(first->time_ns);
  double slower = 0;
  std::string cost = cost_text(breaking, &slower);
  f.summary = "ZeRO-3's trace of modules keeps breaking on " +
              (steady.empty() ? std::string("all ") : std::string()) + job::ranks_text(ranks) +
              (f.step ? " since step " + std::to_string(*f.step) : std::string());
  if (!why.empty()) f.summary += ": " + why[0].first;
  f.summary += "; no prefetch";
  if (slower >= 1.05) {
    char text[64];
    std::snprintf(text, sizeof text, ", such steps take %.1f times as long", slower);
    f.summary += text;
  }
  for (std::size_t i = 0; i < why.size() && i < 3; ++i) {
    f.evidence.push_back(why[i].first + ": " + std::to_string(why[i].second) + " of " +
                         std::to_string(total) + " times");
  }
  if (!cost.empty()) f.evidence.push_back(cost);
  if (!steady.empty()) f.evidence.push_back("it does not break on " + job::ranks_text(steady));
  f.evidence.push_back("judged by " + std::to_string(kBreaks) +
                       " broken traces in training; turns of training and evaluation are not counted");
  if (breaking[0].from_calls) {
    f.evidence.push_back(
        "without the probe: told by how often the ranks compared their traces at the start of a forward pass "
        "(not at all: "
        "complete; once: broken before; three times: recorded anew), so the modules are not known");
  }
  if (counted)
    f.evidence.push_back("nobody announced steps: those that end with the norm of the gradients are counted");
  f.fix = remedies(fact_of(view, *breaking[0].rank, {"version.deepspeed"}), !steady.empty());
  work.findings.push_back(std::move(f));
}

}  // namespace

DSHANG_DETECTOR(114, "trace-cache-invalid", run);

}  // namespace dshang::detect
