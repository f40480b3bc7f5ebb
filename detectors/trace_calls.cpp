#include "detectors/trace_calls.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "core/job/trace_checks.h"

namespace dshang::detect {
namespace {

using flight::VisitKind;
using job::Call;
using job::TraceCheck;
using job::TraceMode;

bool is_float(flight::DType type) {
  using flight::DType;
  return type == DType::kF16 || type == DType::kBF16 || type == DType::kF32 || type == DType::kF64;
}

enum class Kind { kOther, kGather, kScatter, kAllReduce, kReduce };

Kind kind_of(std::string_view op) {
  if (op == "all_gather") return Kind::kGather;
  if (op == "reduce_scatter") return Kind::kScatter;
  if (op == "all_reduce") return Kind::kAllReduce;
  return op == "reduce" ? Kind::kReduce : Kind::kOther;
}

// Calls of one step, in the rank's ring.
struct Span {
  std::uint64_t begin = 0, end = 0;
  bool has_calls = false;  // beside checks
};

// Reads one rank's calls in their order, with the steps that were announced between them.
class CallWalk {
 public:
  CallWalk(const JobView& view, const job::RankView& rank) : view_(view), rank_(rank) {
    out_.rank = &rank;
    out_.from_calls = true;
    const auto& calls = rank.records().calls;
    const std::vector<TraceCheck> checks = job::trace_checks(view, rank);
    if (checks.empty()) return;
    for (const flight::OpInfo& op : rank.records().ops) kinds_.push_back(kind_of(op.name));
    find_announced_steps();
    out_.counted_steps = announced_.empty();
    scatters_ = makes_scatters();
    auto check = checks.begin();
    for (std::uint64_t n = calls.first(); n < calls.end(); ++n) {
      begin_announced_steps(n);
      if (check != checks.end() && n == check->begin) {
        if (norm_over_) begin_counted_step(n);
        take(*check, n);
        n = check->end - 1;
        ++check;
      } else if (!calls.at(n).torn && calls.at(n).number != 0) {
        look(calls.at(n), n);
      }
    }
    if (!spans_.empty()) spans_.back().end = calls.end();
    find_places();
  }
  RankTrace take_result() { return std::move(out_); }

 private:
  void find_announced_steps() {
    const auto& visits = rank_.records().visits;
    for (std::uint64_t n = visits.first(); n < visits.end(); ++n) {
      if (!visits.at(n).torn && visits.at(n).kind == VisitKind::kStep) announced_.push_back(&visits.at(n));
    }
  }

  // DeepSpeed reduces gradients by reduce-scatters, or is told not to; other reductions may be of anything.
  bool makes_scatters() const {
    const auto& calls = rank_.records().calls;
    for (std::uint64_t n = calls.first(); n < calls.end(); ++n) {
      if (!calls.at(n).torn && kind(calls.at(n)) == Kind::kScatter) return true;
    }
    return false;
  }

  void begin_announced_steps(std::uint64_t call) {
    for (; next_step_ < announced_.size() && announced_[next_step_]->calls_before <= call; ++next_step_) {
      begin_step(announced_[next_step_]->step, announced_[next_step_]->time_ns, call);
    }
  }

  void begin_counted_step(std::uint64_t call) {
    norm_over_ = reduced_in_step_ = false;
    if (!out_.counted_steps) return;
    begin_step(static_cast<std::int64_t>(out_.steps.size()), rank_.records().calls.at(call).enter_ns, call);
  }

  void begin_step(std::int64_t number, std::uint64_t time_ns, std::uint64_t call) {
    if (!out_.steps.empty()) {
      out_.steps.back().seconds = static_cast<double>(time_ns - step_ns_) / 1e9;
      spans_.back().end = call;
    }
    step_ns_ = time_ns;
    out_.steps.push_back({number, 0, 0, false});
    spans_.push_back({call, call, false});
  }

  Kind kind(const Call& call) const { return call.op < kinds_.size() ? kinds_[call.op] : Kind::kOther; }

  bool is_reduction(const Call& call) const {
    if (scatters_) return kind(call) == Kind::kScatter;
    bool reduces = kind(call) == Kind::kAllReduce || kind(call) == Kind::kReduce;
    return reduces && call.count > 1 && is_float(call.dtype);
  }

  void look(const Call& call, std::uint64_t n) {
    bool norm = kind(call) == Kind::kAllReduce && call.count == 1 && is_float(call.dtype);
    // DeepSpeed's step sums up one number of each group of gradients, their norm.
    bool ends_step = norm && reduced_in_step_;
    if (out_.counted_steps && (out_.steps.empty() || (norm_over_ && !norm))) begin_counted_step(n);
    if (ends_step) norm_over_ = true;
    if (!out_.steps.empty() && !spans_.back().has_calls) {
      spans_.back().has_calls = true;
      out_.steps.back().complete = mode_ == TraceMode::kComplete;
    }
    if (is_reduction(call)) {
      reduced_in_step_ = reduced_in_pass_ = true;
      gathers_behind_ = 0;
      last_reduction_ = {call.enter_ns, out_.steps.empty() ? kNone : out_.steps.size() - 1};
    } else if (kind(call) == Kind::kGather) {
      ++gathers_behind_;
      if (!out_.steps.empty()) ++out_.steps.back().gathers;
    }
  }

  void take(const TraceCheck& check, std::uint64_t n) {
    if (check.mode == TraceMode::kComplete) {
      recorded_training_ = mode_ == TraceMode::kRecord && reduced_in_pass_;
      recorded_behind_ = gathers_behind_;
      mode_ = TraceMode::kComplete;
    } else {
      // A pass without reductions leaves gathers behind the last one: evaluation.
      bool training = recorded_training_ && gathers_behind_ <= recorded_behind_;
      if (mode_ == TraceMode::kComplete && training && last_reduction_.step != kNone) {
        TraceStep& step = out_.steps[last_reduction_.step];
        step.complete = false;
        out_.breaks.push_back({step.number, last_reduction_.time_ns, {}, {}, 0, 0});
        broken_.push_back({last_reduction_.step, n});
      }
      mode_ = TraceMode::kRecord;
      if (!out_.steps.empty()) out_.steps.back().complete = false;
    }
    reduced_in_pass_ = false;
  }

  void find_places() {
    std::set<job::PlaceId> usual;
    auto is_usual = [&](job::SiteId site) {
      usual.insert(view_.names().place_of(site));
      return false;
    };
    for (std::size_t i = 0; i < spans_.size(); ++i) {
      if (out_.steps[i].complete) for_gathers(spans_[i].begin, spans_[i].end, is_usual);
    }
    if (usual.empty()) return;
    for (std::size_t i = 0; i < broken_.size(); ++i) {
      for_gathers(spans_[broken_[i].step].begin, broken_[i].check, [&](job::SiteId site) {
        if (usual.contains(view_.names().place_of(site))) return false;
        out_.breaks[i].gathers_at = site;
        return true;
      });
    }
  }

  // Until `visit(site)` says true; those whose place is not known are left out.
  void for_gathers(std::uint64_t begin, std::uint64_t end, const auto& visit) const {
    const auto& calls = rank_.records().calls;
    for (std::uint64_t n = std::max(begin, calls.first()); n < end; ++n) {
      const Call& call = calls.at(n);
      if (call.torn || !call.site || kind(call) != Kind::kGather) continue;
      if (view_.names().place_of(call.site) && visit(call.site)) return;
    }
  }

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  struct Reduction {
    std::uint64_t time_ns = 0;
    std::size_t step = kNone;  // index
  };
  struct Broken {
    std::size_t step = 0;  // index
    std::uint64_t check = 0;
  };

  const JobView& view_;
  const job::RankView& rank_;
  RankTrace out_;
  std::vector<Kind> kinds_;     // by op
  std::vector<Span> spans_;     // of out_.steps
  std::vector<Broken> broken_;  // of out_.breaks
  std::vector<const job::Visit*> announced_;
  std::size_t next_step_ = 0;
  std::uint64_t step_ns_ = 0;
  std::optional<TraceMode> mode_;  // not known before the first check
  Reduction last_reduction_;
  std::size_t gathers_behind_ = 0;   // the last reduction
  std::size_t recorded_behind_ = 0;  // the same where the trace became COMPLETE
  bool scatters_ = false, recorded_training_ = false, reduced_in_pass_ = false, reduced_in_step_ = false,
       norm_over_ = false;
};

}  // namespace

RankTrace trace_from_calls(const JobView& view, const job::RankView& rank) {
  return CallWalk(view, rank).take_result();
}

}  // namespace dshang::detect
