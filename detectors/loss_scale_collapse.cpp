// loss-scale-collapse: the fp16 loss scale keeps falling, or has reached its floor.
//
// A scale that adapts falls a few times at the start, until gradients fit, and now and then later; between
// two falls it grows again.  It collapses where it falls 5 times in a row, after a step that was made,
// without growing in between; or where it reaches the smallest value that the framework allows.
#include <algorithm>

#include "detectors/number_facts.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

constexpr std::int64_t kFalls = 5;

bool at_floor(const NumberFact& fact) {
  return fact.number("now").value_or(1e9) <= fact.number("floor").value_or(0) &&
         fact.whole("skipped").value_or(0) > 0;
}

bool collapses(const NumberFact& fact) { return at_floor(fact) || fact.whole("falls").value_or(0) >= kFalls; }

const job::Exception* given_up(const JobView& view, const job::RankView& rank) {
  const auto& exceptions = rank.records().exceptions;
  for (std::uint64_t n = exceptions.first(); n < exceptions.end(); ++n) {
    if (view.names().text(exceptions.at(n).message).find("loss scale already at minimum") !=
        std::string::npos)
      return &exceptions.at(n);
  }
  return nullptr;
}

// What came of it: DeepSpeed ends the job when it cannot lower the scale any more.
void link(Work& work, std::size_t cause) {
  for (std::size_t i = 0; i < work.findings.size(); ++i) {
    Finding& f = work.findings[i];
    bool ended = f.type == "rank-dead" || f.type == "early-return" || f.type == "interrupted";
    if (i != cause && ended && !f.consequence_of && f.at >= work.findings[cause].at - 1)
      f.consequence_of = cause;
  }
}

void run(Work& work) {
  const JobView& view = work.view;
  NumberFact fact;
  const job::RankView* which = nullptr;
  for (const job::RankView* rank : real_ranks(view)) {
    NumberFact mine(view, *rank, "scale");
    if (!which && mine && collapses(mine)) fact = mine, which = rank;
  }
  if (!which) return;
  bool floor = at_floor(fact);
  bool never = fact.text("first_made").empty();
  Finding f;
  f.type = "loss-scale-collapse";
  f.severity = floor ? Severity::kError : Severity::kWarning;
  f.certainty = f.class_certainty = floor ? Certainty::kProven : Certainty::kJudged;
  f.step = number_of(fact.text("changes").substr(0, fact.text("changes").find(':')));
  f.summary = "the fp16 loss scale fell from " + fact.text("start") + " to " + fact.text("now") +
              (floor ? ", the smallest that is allowed" : " and keeps falling") + ": " +
              fact.text("skipped") + " of " + fact.text("of") + " steps were skipped";
  if (never) f.summary += ", none was made";
  f.evidence.push_back("its last changes (step:scale): " + fact.text("changes"));
  if (!floor)
    f.evidence.push_back("judged: it fell " + fact.text("falls") +
                         " times in a row without growing in between");
  f.evidence.push_back(
      "a step is skipped when a gradient, multiplied by the scale, is not finite in fp16 (its largest number "
      "is 65504); "
      "skipped steps train nothing");
  if (const job::Exception* end = given_up(view, *which))
    f.evidence.push_back("DeepSpeed gave up: " + view.names().text(end->message));
  f.fix.push_back(
      "Train in bf16, which needs no loss scale: \"bf16\": {\"enabled\": true} instead of \"fp16\" in "
      "ds_config, bf16=True in "
      "TrainingArguments.");
  f.fix.push_back(
      "A lower learning rate, a longer warm-up, \"gradient_clipping\": 1.0: gradients that grow outgrow "
      "every scale.");
  f.fix.push_back(
      never
          ? "If only the start is the trouble: a smaller fp16.initial_scale_power begins where gradients fit."
          : "If it has to be fp16: a larger fp16.initial_scale_power with a smaller fp16.loss_scale_window "
            "gives the scale room to fall and lets it grow back sooner; fp16.hysteresis makes it slower to "
            "fall.");
  for (std::size_t i = 0; i < work.findings.size(); ++i) {
    const Finding& other = work.findings[i];
    if (other.type == "nan" && other.subject == "training" && !f.consequence_of) f.consequence_of = i;
  }
  f.at = view.seconds(fact.time_ns());
  work.findings.push_back(std::move(f));
  link(work, work.findings.size() - 1);
}

}  // namespace

DSHANG_DETECTOR(117, "loss-scale-collapse", run);

}  // namespace dshang::detect
