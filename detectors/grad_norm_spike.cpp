// grad-norm-spike: the norm of the gradients jumps far above what it was in the steps before.
//
// The probe keeps the norms of the last steps and notes one that is 10 times their median and 4 times their
// largest, with the loss that the rank had in that step; and, some steps later, whether norms stayed high.  A
// norm is the same on all ranks, a loss is not: a rank whose loss jumped alone had the odd sample.  Norms
// that nobody computes (plain torch without clip_grad_norm_) are not seen.
#include <algorithm>
#include <map>

#include "detectors/number_facts.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

constexpr int kMostJumps = 8;       // that one rank notes
constexpr double kOddLoss = 3;      // times what is usual on the rank
constexpr std::int64_t kStays = 4;  // norms that stay high, of those behind a jump
constexpr int kRepeats = 3;

struct Jump {
  std::vector<std::pair<Rank, NumberFact>> by_rank;
  NumberFact after;
};

// Jumps by their steps; those that clipping made harmless are left out.
std::map<std::int64_t, Jump> jumps_of(const JobView& view) {
  std::map<std::int64_t, Jump> jumps;
  for (const job::RankView* rank : real_ranks(view)) {
    for (int number = 1; number <= kMostJumps; ++number) {
      std::string key = "jump." + std::to_string(number);
      NumberFact fact(view, *rank, key);
      std::optional<std::int64_t> step = fact.whole("step");
      if (!step || fact.number("norm").value_or(0) <= fact.number("clip").value_or(0)) continue;
      Jump& jump = jumps[*step];
      jump.by_rank.emplace_back(rank->rank, fact);
      if (!jump.after) jump.after = {view, *rank, key + ".after"};
    }
  }
  return jumps;
}

std::optional<double> times_usual(const NumberFact& fact) {
  std::optional<double> loss = fact.number("loss"), usual = fact.number("usual_loss");
  if (!loss || !usual || *usual <= 0) return std::nullopt;
  return *loss / *usual;
}

// Ranks whose loss jumped in that step, if others' did not.
std::vector<Rank> odd_ranks(const Jump& jump) {
  std::vector<Rank> odd;
  for (const auto& [rank, fact] : jump.by_rank) {
    std::optional<double> times = times_usual(fact);
    if (!times) return {};
    if (!(*times < kOddLoss)) odd.push_back(rank);  // nan too
  }
  return odd.size() < jump.by_rank.size() ? odd : std::vector<Rank>{};
}

void add_remedy(Finding& f, double clip, bool stays, const std::string& sample) {
  std::string outlier =
      sample.empty()
          ? "Look for the odd sample in the batches of that step (too long, empty, wrongly "
            "labelled, not scaled) and leave it out."
          : "Look at " + sample + " (too long, empty, wrongly labelled, not scaled) and leave it out.";
  std::string rate = "Lower the learning rate, or warm up for longer";
  if (stays)
    f.fix.push_back(rate + ": norms that stay high are the mark of too large steps.");
  else
    f.fix.push_back(outlier);
  if (clip <= 0) {
    f.fix.push_back(
        "\"gradient_clipping\": 1.0 in ds_config (max_grad_norm=1.0 in TrainingArguments, clip_grad_norm_ in "
        "a loop of your "
        "own): then one odd batch cannot move the weights far.");
  }
  f.fix.push_back(stays ? outlier : rate + ", if it happens again with other samples.");
}

void run(Work& work) {
  std::map<std::int64_t, Jump> jumps = jumps_of(work.view);
  if (jumps.empty()) return;
  const auto& [step, jump] = *jumps.begin();
  const NumberFact& fact = jump.by_rank[0].second;
  double clip = fact.number("clip").value_or(0);
  bool stays = jump.after.whole("high").value_or(0) >= kStays || jumps.size() >= kRepeats;
  Finding f;
  f.type = "grad-norm-spike";
  f.subject = "norm";
  f.severity = clip > 0 && !stays ? Severity::kInfo : Severity::kWarning;
  f.certainty = f.class_certainty = Certainty::kJudged;
  f.step = step;
  if (!stays) f.suspects = odd_ranks(jump);
  f.summary = "the gradient norm jumped to " + fact.text("norm") + " in step " + std::to_string(step) +
              ", from " + fact.text("usual");
  std::string sample;
  if (!f.suspects.empty()) {
    auto odd = std::find_if(jump.by_rank.begin(), jump.by_rank.end(),
                            [&](const auto& one) { return one.first == f.suspects[0]; });
    f.summary += ": an odd sample on " + job::ranks_text(f.suspects) + ", whose loss was " +
                 odd->second.text("loss") + " instead of " + odd->second.text("usual_loss");
    if (!odd->second.text("batch").empty())
      sample = "batch " + odd->second.text("batch") + " of " + job::ranks_text({odd->first}) + "'s loader";
  } else if (stays) {
    f.summary += jumps.size() >= kRepeats ? ", and it keeps jumping" : ", and it stays high";
  }
  f.evidence.push_back("judged: " + fact.text("norm") + " is more than 10 times the median (" +
                       fact.text("usual") + ") and 4 times the largest (" + fact.text("largest") +
                       ") of the last " + fact.text("of") + " norms");
  if (!sample.empty())
    f.evidence.push_back(
        sample + " was taken last before it (counted from 0; a loader that is read ahead is one further)");
  if (jump.after) {
    f.evidence.push_back("of the " + jump.after.text("steps") + " norms behind it " +
                         jump.after.text("high") + " were above 4 times the median");
  }
  std::string rate = fact.text("lr");
  if (!rate.empty()) f.evidence.push_back("learning rate " + rate);
  std::string clipped = "gradients are clipped to " + fact.text("clip");
  f.evidence.push_back(clip <= 0 ? "gradients are not clipped"
                       : stays ? clipped + ", which does not make the steps of an adaptive optimizer smaller"
                               : clipped + ", which kept the step small");
  if (jumps.size() > 1) {
    std::string more;
    for (auto one = std::next(jumps.begin()); one != jumps.end(); ++one)
      more += (more.empty() ? "" : ", ") + std::to_string(one->first);
    f.evidence.push_back("it jumped again in step " + more);
  }
  add_remedy(f, clip, stays, sample);
  f.at = work.view.seconds(fact.time_ns());
  work.findings.push_back(std::move(f));
}

}  // namespace

DSHANG_DETECTOR(115, "grad-norm-spike", run);

}  // namespace dshang::detect
