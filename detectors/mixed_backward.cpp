// mixed-backward: `loss.backward()` where the installed DeepSpeed needs `engine.backward(loss)`.
//
// From 0.18.3 on DeepSpeed supports the direct call in stages 1 to 3 and refuses it, with an exception, where
// it cannot (stage 0; deepspeed/runtime/engine.py, `_backward_prologue`).  Before that the direct call ran,
// and left out the end of the engine's backward pass: the last gradients are not reduced, the loss is not
// scaled.  That is seen by steps that enter the engine's forward pass and its step, and never its backward
// pass.
//
// What it cannot tell: an engine that is used through a wrapper which calls the parts of the engine's
// backward itself.
#include <algorithm>
#include <cstdio>

#include "detectors/words.h"

namespace dshang::detect {
namespace {

constexpr int kStepsNeeded = 2;

std::string fact_of(const JobView& view, const job::RankView& rank, std::string_view key) {
  const auto& facts = rank.records().facts;
  for (std::uint64_t n = facts.end(); n-- > facts.first();) {
    if (view.names().text(facts.at(n).key) == key) return view.names().text(facts.at(n).value);
  }
  return {};
}

// Whether DeepSpeed of this version runs a direct backward pass to its end; unknown versions do.
bool supports_direct_call(const std::string& version) {
  int major = 0, minor = 0, patch = 0;
  if (std::sscanf(version.c_str(), "%d.%d.%d", &major, &minor, &patch) != 3) return true;
  return major > 0 || minor > 18 || (minor == 18 && patch >= 3);
}

struct Steps {
  int without_backward = 0;
  std::int64_t first = job::kNoStep;
  std::uint64_t first_ns = 0;
  bool any_backward = false;
};

Steps steps_of(const JobView& view, const job::RankView& rank) {
  Steps steps;
  bool forward = false;
  const auto& visits = rank.records().visits;
  for (std::uint64_t n = visits.first(); n < visits.end(); ++n) {
    const job::Visit& visit = visits.at(n);
    if (visit.torn || visit.kind != flight::VisitKind::kPhasePush) continue;
    const std::string& phase = view.names().text(visit.phase);
    if (phase == "forward") forward = true;
    if (phase == "backward") steps.any_backward = true;
    if (phase != "optimizer" || !forward) continue;
    if (steps.without_backward++ == 0) steps.first = visit.step, steps.first_ns = visit.time_ns;
    forward = false;
  }
  return steps;
}

const job::Exception* refusal(const JobView& view, const job::RankView& rank) {
  const auto& exceptions = rank.records().exceptions;
  for (std::uint64_t n = exceptions.first(); n < exceptions.end(); ++n) {
    const std::string& message = view.names().text(exceptions.at(n).message);
    bool refused = message.find("Direct calls to tensor.backward()") != message.npos ||
                   message.find("engine.backward(loss)") != message.npos;
    if (refused) return &exceptions.at(n);
  }
  return nullptr;
}

Finding finding_of_ranks(const std::vector<Rank>& ranks, Severity severity) {
  Finding f;
  f.type = "mixed-backward";
  f.severity = severity;
  f.certainty = f.class_certainty = Certainty::kProven;
  f.suspects = ranks;
  f.fix = {
      "Call `engine.backward(loss)` instead of `loss.backward()`, for every loss; "
      "`accelerator.backward(loss)` and the "
      "Hugging Face trainer do."};
  return f;
}

void run(Work& work) {
  const JobView& view = work.view;
  std::vector<Rank> refused, silent;
  std::string message, version, stage;
  Steps seen;
  std::uint64_t at_ns = 0;
  std::optional<std::int64_t> step;
  for (const job::RankView& rank : view.ranks) {
    std::string its_stage = fact_of(view, rank, "deepspeed.stage");
    if (its_stage.empty()) continue;
    if (const job::Exception* exception = refusal(view, rank)) {
      if (refused.empty()) message = view.names().text(exception->message), at_ns = exception->time_ns;
      if (refused.empty() && exception->step != job::kNoStep) step = exception->step;
      refused.push_back(rank.rank);
      continue;
    }
    std::string its_version = fact_of(view, rank, "version.deepspeed");
    if (supports_direct_call(its_version)) continue;
    Steps steps = steps_of(view, rank);
    if (steps.any_backward || steps.without_backward < kStepsNeeded) continue;
    if (silent.empty()) seen = steps, version = its_version, stage = its_stage;
    silent.push_back(rank.rank);
  }
  if (!refused.empty()) {
    Finding f = finding_of_ranks(refused, Severity::kError);
    f.summary = "DeepSpeed refused a direct `loss.backward()` on " + job::ranks_text(refused);
    f.evidence = {"the exception: " + message};
    f.step = step;
    f.at = view.seconds(at_ns);
    work.findings.push_back(std::move(f));
  }
  if (!silent.empty()) {
    Finding f = finding_of_ranks(silent, Severity::kWarning);
    f.summary = job::ranks_text(silent) + (silent.size() == 1 ? " makes" : " make") +
                " the backward pass without the engine (`loss.backward()`), which DeepSpeed " + version +
                " does not support";
    f.evidence = {std::to_string(seen.without_backward) +
                      " steps entered the engine's forward pass and its step, and none its backward pass",
                  "ZeRO stage " + stage +
                      ": the last gradients of a step are not reduced, and a scaled loss is not scaled"};
    f.fix.push_back(
        "Or use DeepSpeed 0.18.3 or later, which supports the direct call in ZeRO stages 1 to 3.");
    if (seen.first != job::kNoStep) f.step = seen.first;
    f.at = view.seconds(seen.first_ns);
    work.findings.push_back(std::move(f));
  }
}

}  // namespace

DSHANG_DETECTOR(60, "mixed-backward", run);

}  // namespace dshang::detect
