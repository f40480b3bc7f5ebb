// trace-cache-invalid: DeepSpeed's ZeRO-3 keeps losing its recorded order of modules (trace), so that it
// neither prefetches nor bundles gathers: a silent slow-down, not a hang.
//
// A trace that breaks costs two passes: one without a trace (INVALID), one that records a new one (RECORD);
// only with the third is it COMPLETE again.  Breaks are harmless where training and evaluation (or a pass
// without backward) take turns, which DeepSpeed 0.15.4 and later do not tell apart: those are left out.  So
// is what happens once or rarely.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>

#include "detectors/known_facts.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using flight::VisitKind;
using job::Visit;

constexpr std::size_t kBreaks = 3;     // of one rank, in training
constexpr double kShareOfSteps = 0.1;  // of the steps since the first break that were not COMPLETE throughout
constexpr double kPassesPerBreak = 2;
constexpr std::size_t kStepsToCompare = 3;
constexpr std::size_t kFirstSteps = 2;  // not compared: everything is slow in them

struct Break {
  std::int64_t step = job::kNoStep;
  std::uint64_t time_ns = 0;
  std::string got, expected;  // modules; expected "-" = the trace had ended
  job::PlaceId place = 0;     // where the module was entered
};

struct Step {
  std::int64_t number = job::kNoStep;
  double seconds = 0;
  std::size_t gathers = 0;
  bool complete = true;  // the trace was, throughout
};

struct RankTrace {
  const job::RankView* rank = nullptr;
  std::vector<Break> breaks;
  std::vector<Step> steps;
};

std::string field(const std::string& text, std::string_view name) {
  std::size_t at = text.find(std::string(name) + "=");
  if (at == text.npos) return {};
  at += name.size() + 1;
  return text.substr(at, text.find(' ', at) - at);
}

// Reads one rank's visits in their order.
class Walk {
 public:
  Walk(const JobView& view, const job::RankView& rank) : view_(view) {
    out_.rank = &rank;
    const auto& visits = rank.records().visits;
    for (std::uint64_t n = visits.first(); n < visits.end(); ++n) {
      if (!visits.at(n).torn) look(visits.at(n));
    }
    settle();
  }
  RankTrace take() { return std::move(out_); }

 private:
  void look(const Visit& v) {
    switch (v.kind) {
      case VisitKind::kStep:
        return begin_step(v);
      case VisitKind::kGather:
        if (!out_.steps.empty()) ++out_.steps.back().gathers;
        return;
      case VisitKind::kModuleEnter:
        return module(v);
      case VisitKind::kTraceMode:
        return mode(v);
      default:
        return;
    }
  }

  void begin_step(const Visit& v) {
    if (!out_.steps.empty()) out_.steps.back().seconds = static_cast<double>(v.time_ns - step_ns_) / 1e9;
    step_ns_ = v.time_ns;
    out_.steps.push_back({v.step, 0, 0, complete_});
  }

  void mode(const Visit& v) {
    const std::string& text = view_.names().text(v.detail);
    if (!mode_known_ && text.starts_with("INVALID")) {
      for (Step& step : out_.steps)
        step.complete = true;  // what was before it is overwritten: only a complete one breaks
    }
    mode_known_ = true;
    complete_ = text == "COMPLETE";
    if (!complete_ && !out_.steps.empty()) out_.steps.back().complete = false;
    if (text == "RECORD") recorded_ = {}, recording_ = true;
    if (text == "COMPLETE") recording_ = false;
    if (text.starts_with("INVALID")) {
      settle();
      pending_ = Break{v.step, v.time_ns, field(text, "got"), field(text, "expected"), 0};
      told_pass_ = field(text, "recorded");
    }
  }

  // The visit that follows a break is of the module that broke the trace.
  void module(const Visit& v) {
    bool backward = view_.names().text(v.phase) == "backward";
    if (recording_) {
      recorded_.backward = recorded_.backward || backward;
      recorded_.evaluation = recorded_.evaluation || v.training == 0;
      recorded_.known = true;
    }
    if (!pending_) return;
    pending_->place = v.site ? view_.names().place_of(v.site) : 0;
    pending_evaluates_ = v.training == 0;
    settle();
  }

  void settle() {
    if (!pending_) return;
    bool without_backward = told_pass_.empty()
                                ? recorded_.known && (!recorded_.backward || recorded_.evaluation)
                                : told_pass_ == "forward";
    if (!pending_evaluates_ && !without_backward) out_.breaks.push_back(*pending_);
    pending_.reset();
    pending_evaluates_ = false;
  }

  // What was visited while a trace was recorded: right for one model only, of two they would be taken
  // together.
  struct Recorded {
    bool known = false, backward = false, evaluation = false;
  };

  const JobView& view_;
  RankTrace out_;
  Recorded recorded_;
  bool recording_ = false, complete_ = false, mode_known_ = false, pending_evaluates_ = false;
  std::optional<Break> pending_;
  std::string told_pass_;  // the pass of the broken trace, where the probe says it: training or forward
  std::uint64_t step_ns_ = 0;
};

// Enough breaks, in different steps, that cost a share of the steps.
bool keeps_breaking(const RankTrace& trace) {
  std::set<std::int64_t> steps;
  for (const Break& b : trace.breaks) steps.insert(b.step);
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

// The breaks by what broke, the most frequent first.
std::vector<std::pair<std::string, std::size_t>> causes(const JobView& view,
                                                        const std::vector<RankTrace>& traces) {
  std::map<std::string, std::size_t> counts;
  for (const RankTrace& trace : traces) {
    for (const Break& b : trace.breaks) {
      if (b.got.empty()) continue;
      std::string text =
          b.got + " came " +
          (b.expected == "-" ? "after the trace had ended" : "where the trace has " + b.expected);
      if (b.place) text += " (" + view.names().place_text(b.place) + ")";
      ++counts[text];
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
    RankTrace trace = Walk(view, *rank).take();
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
  const Break* first = &breaking[0].breaks[0];
  std::size_t total = 0;
  for (const RankTrace& trace : breaking) {
    total += trace.breaks.size();
    if (trace.breaks[0].time_ns < first->time_ns) first = &trace.breaks[0];
  }
  if (first->step != job::kNoStep) f.step = first->step;
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
  f.fix = remedies(fact_of(view, *breaking[0].rank, {"version.deepspeed"}), !steady.empty());
  work.findings.push_back(std::move(f));
}

}  // namespace

DSHANG_DETECTOR(114, "trace-cache-invalid", run);

}  // namespace dshang::detect
