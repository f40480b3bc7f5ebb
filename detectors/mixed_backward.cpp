// mixed-backward: PyTorch's loss.backward() where the installed DeepSpeed needs engine.backward(loss).
//
// DeepSpeed 0.18.3 and later supports loss.backward() in ZeRO stages 1 to 3; in stage 0, and with fp16 unless
// engine.scale(loss) was called, it refuses it with an exception.  Before 0.18.3 it notices nothing: the last
// reduction of gradients is missing. (DeepSpeed pull request 7665, runtime/engine.py.)
#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include "detectors/known_facts.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

constexpr const char* kUnsupported = "Direct calls to tensor.backward() are not supported";
constexpr const char* kUnscaled =
    "Loss scaling is required for this configuration, but backward() was called directly";
constexpr int kStepsNeeded = 2;
constexpr std::array<int, 3> kSupportedSince = {0, 18, 3};

std::array<int, 3> version_of(const std::string& text) {
  std::array<int, 3> version = {-1, 0, 0};
  std::sscanf(text.c_str(), "%d.%d.%d", &version[0], &version[1], &version[2]);
  return version;
}

struct Refusal {
  const job::Exception* exception = nullptr;
  bool unscaled = false;
};

Refusal refusal_of(const JobView& view, const job::RankView& rank) {
  const auto& exceptions = rank.records().exceptions;
  for (std::uint64_t n = exceptions.first(); n < exceptions.end(); ++n) {
    const std::string& message = view.names().text(exceptions.at(n).message);
    bool unscaled = message.find(kUnscaled) != message.npos;
    if (unscaled || message.find(kUnsupported) != message.npos) return {&exceptions.at(n), unscaled};
  }
  return {};
}

std::string deepspeed_text(const JobView& view, const job::RankView& rank) {
  const std::string& stage = fact_of(view, rank, {"deepspeed.stage"});
  return "DeepSpeed " + fact_of(view, rank, {"version.deepspeed"}) +
         (stage.empty() ? "" : ", ZeRO stage " + stage);
}

Finding common(const std::vector<Rank>& ranks) {
  Finding f;
  f.type = "mixed-backward";
  f.severity = Severity::kError;
  f.certainty = f.class_certainty = Certainty::kProven;
  f.suspects = ranks;
  return f;
}

void refused(Work& work) {
  const JobView& view = work.view;
  std::vector<Rank> ranks;
  Refusal first;
  const job::RankView* of = nullptr;
  for (const job::RankView& rank : view.ranks) {
    Refusal refusal = refusal_of(view, rank);
    if (!refusal.exception) continue;
    ranks.push_back(rank.rank);
    if (!first.exception || refusal.exception->time_ns < first.exception->time_ns)
      first = refusal, of = &rank;
  }
  if (!of) return;
  const job::Exception& e = *first.exception;
  Finding f = common(ranks);
  f.summary = job::ranks_text(ranks) +
              " called loss.backward(), which DeepSpeed refuses here; the engine's own backward is needed";
  f.evidence.push_back(deepspeed_text(view, *of));
  f.evidence.push_back(view.names().text(e.type) + ": " + view.names().text(e.message));
  if (const std::string& at = fact_of(view, *of, {"backward.torch"}); !at.empty()) {
    f.evidence.push_back("first backward() outside engine.backward: " + at);
  }
  if (e.step != job::kNoStep) f.step = e.step;
  f.fix.push_back(
      first.unscaled
          ? "Call engine.backward(loss), or engine.scale(loss).backward(): with fp16 the loss must be scaled."
          : "Call engine.backward(loss) in place of loss.backward().");
  if (!first.unscaled) {
    f.fix.push_back(
        "ZeRO stages 1 to 3 of this version support loss.backward(): {\"zero_optimization\": {\"stage\": "
        "1}}.");
  }
  f.at = view.seconds(e.time_ns);
  std::size_t cause = work.findings.size();
  for (Finding& other : work.findings) {
    bool same = std::any_of(ranks.begin(), ranks.end(), [&](Rank rank) {
      return std::count(other.suspects.begin(), other.suspects.end(), rank) > 0;
    });
    if (same && !other.consequence_of && other.severity >= Severity::kError && other.at >= f.at)
      other.consequence_of = cause;
  }
  work.findings.push_back(std::move(f));
}

struct Direct {
  std::string first;  // "step 3 train.py:41 main"
  std::int64_t step = job::kNoStep;
  std::uint64_t time_ns = 0;
};

// Whether an engine makes its steps without its own backward pass.  The probe notes it; without the probe it
// shows where phases are told (NVTX, dshang.h): steps that enter forward and optimizer, and no backward in
// the whole job.
std::optional<Direct> direct_backward(const JobView& view, const job::RankView& rank) {
  const std::string& noted = fact_of(view, rank, {"backward.plain"});
  if (!noted.empty()) return Direct{noted, job::kNoStep, fact_time(view, rank, "backward.plain")};
  std::optional<Direct> found;
  int steps = 0;
  bool forward = false;
  const auto& visits = rank.records().visits;
  for (std::uint64_t n = visits.first(); n < visits.end(); ++n) {
    const job::Visit& visit = visits.at(n);
    if (visit.torn || visit.kind != flight::VisitKind::kPhasePush) continue;
    const std::string& phase = view.names().text(visit.phase);
    if (phase == "backward") return std::nullopt;
    if (phase == "optimizer" && forward) {
      if (steps++ == 0) found = Direct{"", visit.step, visit.time_ns};
    }
    forward = phase == "forward" || (forward && phase != "optimizer");
  }
  if (steps < kStepsNeeded) return std::nullopt;
  if (found->step != job::kNoStep) found->first = "step " + std::to_string(found->step);
  return found;
}

void unnoticed(Work& work) {
  const JobView& view = work.view;
  std::vector<Rank> ranks;
  const job::RankView* of = nullptr;
  Direct first;
  for (const job::RankView& rank : view.ranks) {
    std::array<int, 3> version = version_of(fact_of(view, rank, {"version.deepspeed"}));
    bool engine = !fact_of(view, rank, {"deepspeed.stage"}).empty();
    if (!engine || version[0] < 0 || version >= kSupportedSince) continue;
    std::optional<Direct> direct = direct_backward(view, rank);
    if (!direct) continue;
    ranks.push_back(rank.rank);
    if (!of) of = &rank, first = *direct;
  }
  if (!of) return;
  Finding f = common(ranks);
  f.summary =
      job::ranks_text(ranks) +
      " called loss.backward(), of which this DeepSpeed knows nothing: gradients are not (all) reduced";
  f.evidence.push_back(deepspeed_text(view, *of) + ": loss.backward() is supported from 0.18.3 on");
  f.evidence.push_back("engine.step() without engine.backward() since the step before" +
                       (first.first.empty() ? "" : ", first: " + first.first));
  if (first.step != job::kNoStep) f.step = first.step;
  f.fix = {"Call engine.backward(loss) in place of loss.backward().",
           "Or install DeepSpeed 0.18.3 or later, which supports loss.backward() in ZeRO stages 1 to 3."};
  f.at = view.seconds(first.time_ns);
  work.findings.push_back(std::move(f));
}

void run(Work& work) {
  refused(work);
  unnoticed(work);
}

}  // namespace

DSHANG_DETECTOR(113, "mixed-backward", run);

}  // namespace dshang::detect
