// mixed-backward: PyTorch's loss.backward() where the installed DeepSpeed needs engine.backward(loss).
//
// DeepSpeed 0.18.3 and later supports loss.backward() in ZeRO stages 1 to 3; in stage 0, and with fp16 unless
// engine.scale(loss) was called, it refuses it with an exception.  Before 0.18.3 it notices nothing: in stage
// 0 no gradient is reduced; in stages 1 to 3 those of the last bucket are not, and engine.step() finds none
// to apply. (DeepSpeed pull request 7665; runtime/engine.py and runtime/zero/stage*.py of 0.14.5 to 0.19.8;
// docs/versions.md.)
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
constexpr const char* kUnprepared = "object has no attribute 'ipg_index'";  // stage 2 of 0.14.5
constexpr int kStepsNeeded = 2;
constexpr int kMostEngines = 8;
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

// What stands behind the facts of a process's engines.
std::string ending_of(int number) { return number == 1 ? "" : "." + std::to_string(number); }

enum class Direct { kUnknown, kUnnoticed, kSupported, kRefused };

// What an engine does with loss.backward(): it says so itself; where it did not, its version tells.
Direct direct_of(const JobView& view, const job::RankView& rank, const std::string& ending) {
  const std::string& stage = fact_of(view, rank, {"deepspeed.stage" + ending});
  if (stage.empty()) return Direct::kUnknown;
  const std::string& said = fact_of(view, rank, {"deepspeed.direct_backward" + ending});
  if (said == "unnoticed") return Direct::kUnnoticed;
  if (said == "supported") return Direct::kSupported;
  if (said == "refused") return Direct::kRefused;
  std::array<int, 3> version = version_of(fact_of(view, rank, {"version.deepspeed"}));
  if (version[0] < 0) return Direct::kUnknown;
  if (version < kSupportedSince) return Direct::kUnnoticed;
  return stage == "0" ? Direct::kRefused : Direct::kSupported;
}

// Of the rank's engines the first of this kind, else the first.
std::string first_engine(const JobView& view, const job::RankView& rank, Direct kind) {
  for (int number = 1; number <= kMostEngines; ++number) {
    if (direct_of(view, rank, ending_of(number)) == kind) return ending_of(number);
  }
  return "";
}

std::string deepspeed_text(const JobView& view, const job::RankView& rank, const std::string& ending) {
  const std::string& stage = fact_of(view, rank, {"deepspeed.stage" + ending});
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

// Makes it the cause of the errors and hangs of the same ranks that followed.
void add_cause(Work& work, Finding f) {
  for (Finding& other : work.findings) {
    bool same = std::any_of(f.suspects.begin(), f.suspects.end(), [&](Rank rank) {
      return std::count(other.suspects.begin(), other.suspects.end(), rank) > 0;
    });
    if (same && !other.consequence_of && other.severity >= Severity::kError && other.at >= f.at)
      other.consequence_of = work.findings.size();
  }
  work.findings.push_back(std::move(f));
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
  std::string engine = first_engine(view, *of, first.unscaled ? Direct::kSupported : Direct::kRefused);
  Finding f = common(ranks);
  f.summary = job::ranks_text(ranks) +
              " called loss.backward(), which DeepSpeed refuses here; the engine's own backward is needed";
  f.evidence.push_back(deepspeed_text(view, *of, engine));
  f.evidence.push_back(view.names().text(e.type) + ": " + view.names().text(e.message));
  if (const std::string& at = fact_of(view, *of, {"backward.torch"}); !at.empty()) {
    f.evidence.push_back("first backward() outside engine.backward: " + at);
  }
  if (e.step != job::kNoStep) f.step = e.step;
  if (first.unscaled) {
    f.fix = {
        "Call engine.backward(loss), or engine.scale(loss).backward(): with fp16 the loss must be scaled."};
  } else if (const std::string& stage = fact_of(view, *of, {"deepspeed.stage" + engine}); stage == "0") {
    f.fix = {
        "Call engine.backward(loss) in place of loss.backward().",
        "ZeRO stages 1 to 3 of this version support loss.backward(): {\"zero_optimization\": {\"stage\": "
        "1}}."};
  } else {
    f.fix = {"Call engine.backward(loss) in place of loss.backward().",
             "Or install a newer PyTorch: this one lacks what DeepSpeed needs to support loss.backward()."};
  }
  f.at = view.seconds(e.time_ns);
  add_cause(work, std::move(f));
}

struct Plain {
  std::string first;  // "step 3 train.py:41 main"
  std::int64_t step = job::kNoStep;
  std::uint64_t time_ns = 0;
  bool failed = false;  // inside backward()
};

// backward() that failed for want of what engine.backward prepares.
std::optional<Plain> unprepared(const JobView& view, const job::RankView& rank, const std::string& engine) {
  const std::string& stage = fact_of(view, rank, {"deepspeed.stage" + engine});
  if (stage != "1" && stage != "2") return std::nullopt;
  const auto& exceptions = rank.records().exceptions;
  for (std::uint64_t n = exceptions.first(); n < exceptions.end(); ++n) {
    const job::Exception& e = exceptions.at(n);
    if (view.names().text(e.message).find(kUnprepared) == std::string::npos) continue;
    return Plain{fact_of(view, rank, {"backward.torch"}), e.step, e.time_ns, true};
  }
  return std::nullopt;
}

// Whether an engine makes its steps without its own backward pass.  The probe notes it; without the probe it
// shows where phases are told (NVTX, dshang.h): steps that enter forward and optimizer, and no backward in
// the whole job.
std::optional<Plain> plain_backward(const JobView& view, const job::RankView& rank,
                                    const std::string& engine) {
  std::string key = "backward.plain" + engine;
  const std::string& noted = fact_of(view, rank, {key});
  if (!noted.empty()) return Plain{noted, job::kNoStep, fact_time(view, rank, key)};
  if (!engine.empty()) return std::nullopt;
  std::optional<Plain> found;
  int steps = 0;
  bool forward = false;
  const auto& visits = rank.records().visits;
  for (std::uint64_t n = visits.first(); n < visits.end(); ++n) {
    const job::Visit& visit = visits.at(n);
    if (visit.torn || visit.kind != flight::VisitKind::kPhasePush) continue;
    const std::string& phase = view.names().text(visit.phase);
    if (phase == "backward") return std::nullopt;
    if (phase == "optimizer" && forward) {
      if (steps++ == 0) found = Plain{"", visit.step, visit.time_ns};
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
  std::string engine;
  Plain first;
  for (const job::RankView& rank : view.ranks) {
    std::optional<Plain> plain;
    std::string ending;
    for (int number = 1; number <= kMostEngines && !plain; ++number) {
      ending = ending_of(number);
      if (direct_of(view, rank, ending) != Direct::kUnnoticed) continue;
      plain = plain_backward(view, rank, ending);
      if (!plain) plain = unprepared(view, rank, ending);
    }
    if (!plain) continue;
    ranks.push_back(rank.rank);
    if (!of) of = &rank, engine = ending, first = *plain;
  }
  if (!of) return;
  bool stage_0 = fact_of(view, *of, {"deepspeed.stage" + engine}) == "0";
  Finding f = common(ranks);
  f.summary =
      job::ranks_text(ranks) + " called loss.backward(), of which this DeepSpeed knows nothing: " +
      (stage_0 ? "no gradient is reduced, and the optimizer gets those of its own rank alone, or (bf16) none"
               : "the last gradients are not reduced, and engine.step() fails or goes on without them");
  f.evidence.push_back(deepspeed_text(view, *of, engine) + ": loss.backward() is supported from 0.18.3 on" +
                       (stage_0 ? ", in stages 1 to 3" : ""));
  if (first.failed) {
    f.evidence.push_back("backward() failed for want of what engine.backward() prepares" +
                         (first.first.empty() ? "" : ", at " + first.first));
  } else {
    f.evidence.push_back("engine.step() without engine.backward() since the step before" +
                         (first.first.empty() ? "" : ", first: " + first.first));
  }
  if (first.step != job::kNoStep) f.step = first.step;
  f.fix = {"Call engine.backward(loss) in place of loss.backward()."};
  if (!stage_0) {
    f.fix.push_back(
        "Or install DeepSpeed 0.18.3 or later, which supports loss.backward() in ZeRO stages 1 to 3.");
  }
  f.at = view.seconds(first.time_ns);
  add_cause(work, std::move(f));
}

void run(Work& work) {
  refused(work);
  unnoticed(work);
}

}  // namespace

DSHANG_DETECTOR(113, "mixed-backward", run);

}  // namespace dshang::detect
