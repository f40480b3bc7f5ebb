#include "detectors/trace_walk.h"

#include "detectors/trace_calls.h"

namespace dshang::detect {
namespace {

using flight::VisitKind;
using job::Visit;

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
      for (TraceStep& step : out_.steps)
        step.complete = true;  // what was before it is overwritten: only a complete one breaks
    }
    mode_known_ = true;
    complete_ = text == "COMPLETE";
    if (!complete_ && !out_.steps.empty()) out_.steps.back().complete = false;
    if (text == "RECORD") recorded_ = {}, recording_ = true;
    if (text == "COMPLETE") recording_ = false;
    if (text.starts_with("INVALID")) {
      settle();
      pending_ = TraceBreak{v.step, v.time_ns, field(text, "got"), field(text, "expected"), 0, 0};
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
  std::optional<TraceBreak> pending_;
  std::string told_pass_;  // the pass of the broken trace, where the probe says it: training or forward
  std::uint64_t step_ns_ = 0;
};

// The probe notes both; a ring may have lost the modes of a trace that stays COMPLETE.
bool has_probe(const job::RankView& rank) {
  const auto& visits = rank.records().visits;
  for (std::uint64_t n = visits.first(); n < visits.end(); ++n) {
    const Visit& v = visits.at(n);
    if (!v.torn && (v.kind == VisitKind::kTraceMode || v.kind == VisitKind::kGather)) return true;
  }
  return false;
}

}  // namespace

RankTrace trace_of(const JobView& view, const job::RankView& rank) {
  return has_probe(rank) ? Walk(view, rank).take() : trace_from_calls(view, rank);
}

}  // namespace dshang::detect
