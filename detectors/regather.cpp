// regather: in ZeRO-3 the same weights are gathered more often in every step than the forward pass, its
// recomputation and the backward pass of each micro-step need.  Slow, not wrong: `info`.
//
// Judged on training modules and on the last finished steps only: generation and evaluation gather as often
// as they run.
#include <algorithm>
#include <map>

#include "detectors/words.h"

namespace dshang::detect {
namespace {

constexpr std::size_t kSteps = 3;  // finished steps that must agree

struct Gathered {
  std::uint64_t times = 0;
  job::NameId what = 0;  // the parameters, as text
};

struct Step {
  std::int64_t number = job::kNoStep;
  std::uint64_t time_ns = 0;
  std::uint64_t forward = 0, backward = 0, micro = 0;
  std::map<std::uint64_t, Gathered> gathers;  // by parameters

  // Each forward pass may be made again by activation checkpointing.
  std::uint64_t needed() const { return std::max(2 * forward + backward, 3 * (micro + 1)); }
};

std::vector<Step> finished_steps(const JobView& view, const job::RankView& rank) {
  std::vector<Step> steps;
  bool training = false, begun = false;
  Step now;
  const auto& visits = rank.records().visits;
  for (std::uint64_t n = visits.first(); n < visits.end(); ++n) {
    const job::Visit& visit = visits.at(n);
    if (visit.torn) continue;
    switch (visit.kind) {
      case flight::VisitKind::kStep:
        if (begun) steps.push_back(std::move(now));
        now = Step{};
        now.number = visit.step;
        now.time_ns = visit.time_ns;
        begun = true;
        break;
      case flight::VisitKind::kMicroStep:
        now.micro = std::max<std::uint64_t>(now.micro, visit.micro);
        break;
      case flight::VisitKind::kPhasePush:
        now.forward += job::is_forward_phase(view.names().text(visit.phase));
        now.backward += job::is_backward_phase(view.names().text(visit.phase));
        break;
      case flight::VisitKind::kModuleEnter:
        training = visit.training == 1;
        break;
      case flight::VisitKind::kGather:
        if (training && visit.params)
          now.gathers[visit.params].times++, now.gathers[visit.params].what = visit.detail;
        break;
      default:
        break;
    }
  }
  return steps;
}

struct Excess {
  std::uint64_t params = 0;
  Gathered gathered;
  std::uint64_t needed = 0;
  const Step* step = nullptr;
  std::size_t sets = 0;  // of parameters that are gathered too often
};

// What is gathered too often in all of the last steps; the worst of it.
std::optional<Excess> excess_of(const std::vector<Step>& steps) {
  if (steps.size() < kSteps) return std::nullopt;
  Excess worst;
  const Step& first = steps[steps.size() - kSteps];
  for (const auto& [params, gathered] : first.gathers) {
    std::uint64_t fewest = UINT64_MAX;
    bool always = true;
    for (std::size_t i = steps.size() - kSteps; i < steps.size(); ++i) {
      auto at = steps[i].gathers.find(params);
      always = always && at != steps[i].gathers.end() && at->second.times > steps[i].needed();
      if (always) fewest = std::min(fewest, at->second.times);
    }
    if (!always) continue;
    ++worst.sets;
    if (fewest <= worst.gathered.times) continue;
    worst.params = params;
    worst.gathered = {fewest, gathered.what};
    worst.needed = first.needed();
    worst.step = &first;
  }
  if (worst.sets == 0) return std::nullopt;
  return worst;
}

void run(Work& work) {
  const JobView& view = work.view;
  std::vector<Rank> ranks;
  Finding f;
  for (const job::RankView& rank : view.ranks) {
    std::vector<Step> steps = finished_steps(view, rank);
    std::optional<Excess> excess = excess_of(steps);
    if (!excess) continue;
    ranks.push_back(rank.rank);
    if (ranks.size() > 1) continue;
    std::string what = view.names().text(excess->gathered.what);
    f.summary = "the same weights are gathered " + std::to_string(excess->gathered.times) +
                " times in a step" + (what.empty() ? "" : " (" + what + ")") + ", where " +
                std::to_string(excess->needed) + " would do";
    f.evidence = {"forward, recomputation and backward of the micro-steps need " +
                  std::to_string(excess->needed) + " gathers a step; " + std::to_string(excess->sets) +
                  (excess->sets == 1 ? " set" : " sets") + " of parameters had more in each of the last " +
                  std::to_string(kSteps) + " steps, from step " + std::to_string(excess->step->number) +
                  " on"};
    f.step = excess->step->number;
    f.at = view.seconds(excess->step->time_ns);
  }
  if (ranks.empty()) return;
  f.type = "regather";
  f.severity = Severity::kInfo;
  f.certainty = f.class_certainty = Certainty::kProven;
  if (ranks.size() < view.ranks.size()) f.suspects = ranks;
  f.evidence.push_back("seen on " + job::ranks_text(ranks));
  f.fix = {
      "Call the module once for all of its input instead of chunk by chunk, or hold its weights with "
      "`deepspeed.zero.GatheredParameters` around the loop.",
      "Let DeepSpeed keep weights that are used again soon: larger `stage3_max_reuse_distance` and "
      "`stage3_max_live_parameters`."};
  work.findings.push_back(std::move(f));
}

}  // namespace

DSHANG_DETECTOR(70, "regather", run);

}  // namespace dshang::detect
