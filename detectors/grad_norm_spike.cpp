// grad-norm-spike: the norm of the gradients jumps far above what it was in the steps before.
//
// The probe keeps the norms of the last steps and notes one that is 10 times their median and 4 times their
// largest, with the loss that the rank had in that step; and, some steps later, whether norms stayed high.  A
// norm is the same on all ranks, a loss is not: a rank whose loss jumped alone had the odd sample.  Where the
// loss jumped by the same factor, before any step was made with it, and both stay level behind it, the loss is
// another one (a sum instead of a mean): worth knowing, no trouble.  Norms that nobody computes (plain torch
// without clip_grad_norm_) are not seen.
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

constexpr double kAlike = 1.5;  // factors of norm and loss that are the same one; batches differ
constexpr double kLevel = 2;    // what stays level stays within

struct Jump {
  std::vector<std::pair<Rank, NumberFact>> by_rank;
  NumberFact after, over;
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
      if (!jump.over) jump.over = {view, *rank, key + ".over"};
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

bool within(std::optional<double> a, std::optional<double> b, double factor) {
  return a && b && *a > 0 && *b > 0 && *a <= factor * *b && *b <= factor * *a;
}

// The loss of all ranks together jumped as the norm did, and neither moves behind it, as far as that is known.
bool is_another_loss(const Jump& jump) {
  double loss = 0, usual_loss = 0;
  for (const auto& [rank, fact] : jump.by_rank) {
    std::optional<double> times = times_usual(fact);
    if (!times || !(*times >= kOddLoss)) return false;  // nan too
    loss += *fact.number("loss");
    usual_loss += *fact.number("usual_loss");
  }
  const NumberFact& first = jump.by_rank[0].second;
  std::optional<double> norm = first.number("norm"), usual = first.number("usual");
  if (!norm || !usual || *usual <= 0 || !within(*norm / *usual, loss / usual_loss, kAlike)) return false;
  return !jump.after || (within(jump.after.number("norm"), norm, kLevel) &&
                         within(jump.after.number("loss"), loss / static_cast<double>(jump.by_rank.size()), kLevel));
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
  bool is_other = jumps.size() == 1 && is_another_loss(jump);
  bool is_over = jumps.size() < kRepeats && std::all_of(jumps.begin(), jumps.end(), [](const auto& one) {
    return one.second.over || one.second.after.whole("high").value_or(1) == 0;
  });
  Finding f;
  f.type = "grad-norm-spike";
  f.subject = "norm";
  f.severity = is_other || (clip > 0 && !stays) ? Severity::kInfo : Severity::kWarning;
  f.certainty = f.class_certainty = Certainty::kJudged;
  f.step = step;
  if (!stays && !is_other) f.suspects = odd_ranks(jump);
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
  } else if (is_other) {
    f.summary += ", and the loss by the same factor: it seems to be another loss since then (a sum instead of a "
                 "mean, other weights)";
  } else if (stays) {
    f.summary += jumps.size() >= kRepeats ? ", and it keeps jumping"
                 : is_over              ? ", and it stayed high for some time"
                                        : ", and it stays high";
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
  if (is_other)
    f.evidence.push_back("the loss jumped to " + fact.text("loss") + ", from " + fact.text("usual_loss") +
                         ", in the same step, on every rank" +
                         (jump.after ? "; behind it norms were " + jump.after.text("norm") + " and losses " +
                                           jump.after.text("loss") + " (medians)"
                                     : ""));
  if (jump.over)
    f.evidence.push_back("from step " + jump.over.text("step") + " at the latest it was as before: " +
                         jump.over.text("norm"));
  std::string rate = fact.text("lr");
  if (!rate.empty()) f.evidence.push_back("learning rate " + rate);
  std::string clipped = "gradients are clipped to " + fact.text("clip");
  f.evidence.push_back(clip <= 0 ? "gradients are not clipped"
                       : stays && !is_other ? clipped + ", which does not make the steps of an adaptive optimizer smaller"
                               : clipped + ", which kept the step small");
  if (jumps.size() > 1) {
    std::string more;
    for (auto one = std::next(jumps.begin()); one != jumps.end(); ++one)
      more += (more.empty() ? "" : ", ") + std::to_string(one->first);
    f.evidence.push_back("it jumped again in step " + more);
  }
  if (is_other)
    f.fix = {"Nothing, if the loss was changed there on purpose; SGD then wants a learning rate that is smaller by "
             "the same factor, Adam does not.",
             "Else look for what changed in that step: `reduction=\"sum\"`, a weight of the loss, its scaling by "
             "accumulation steps."};
  else
    add_remedy(f, clip, stays, sample);
  f.at = work.view.seconds(fact.time_ns());
  if (stays && is_over) {
    std::uint64_t over_ns = 0;
    for (const auto& [number, one] : jumps)
      over_ns = std::max({over_ns, one.over.time_ns(), one.after.time_ns()});
    f.resolved = work.view.seconds(over_ns);
  }
  work.findings.push_back(std::move(f));
}

}  // namespace

DSHANG_DETECTOR(115, "grad-norm-spike", run);

}  // namespace dshang::detect
