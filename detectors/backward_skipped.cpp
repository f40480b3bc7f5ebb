// backward-skipped: the forward pass was made, its backward pass, or the rest of it, was not; the rank may
// already be in the next step.
#include <algorithm>

#include "detectors/passes.h"
#include "detectors/raised.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using job::Story;
using job::Token;

// Of visits: the cut begins within a step and holds its backward pass, or the rest of it, and no forward
// before.
bool cuts_backward(const JobView& view, const Divergence& d) {
  for (const Token& token : d.story.left_out) {
    const std::string& phase = view.names().text(token.phase);
    if (job::is_backward_phase(phase)) break;
    if (token.kind == Token::Kind::kStep || job::is_forward_phase(phase))
      return false;  // more than a backward pass
  }
  if (!in_phase(view, d.story.left_out, job::is_backward_phase)) return false;
  if (d.story.leaves_out_another_backward) return true;
  // What follows is no part of the same backward pass: a single module left out of it is `module-skipped`.
  const std::string& next = view.names().text(d.story.next[0].phase);
  return d.story.next[0].kind == Token::Kind::kStep || !job::is_backward_phase(next);
}

// Of visits: the others are in the backward pass of what was run forward, or begin it; the suspects have gone
// past it.
bool goes_past_backward(const JobView& view, const Divergence& d) {
  const Story& story = d.story;
  if (!story.from_visits || story.next.empty() || story.expected.empty()) return false;
  const Token &next = story.next[0], &expected = story.expected[0];
  bool outside = next.kind == Token::Kind::kStep || next.kind == Token::Kind::kPhase;
  return outside && next.part != job::Part::kBackward && next.part != job::Part::kForward &&
         job::is_backward_phase(view.names().text(expected.phase)) &&
         story.backward_before < story.forward_before;
}

bool is_in_later_step(const Token& token, const Token& than) {
  return token.call && than.call && than.call->step != job::kNoStep && token.call->step > than.call->step;
}

// Of calls: they hold the rest of a backward pass, and the suspects go on with something else.
bool cuts_rest_of_backward(const Divergence& d) {
  const job::Tokens& cut = d.story.left_out;
  const Token& next = d.story.next[0];
  bool known = next.place || next.phase || next.part != job::Part::kUnknown;
  bool elsewhere = !cut.empty() && (next.part != job::Part::kBackward || is_in_later_step(next, cut[0]));
  if (!elsewhere || !known) return false;
  // What is predicted may hold what is only done in some steps.
  if (!d.story.others_went_on && is_in_later_step(next, cut[0])) return cut[0].part == job::Part::kBackward;
  return std::all_of(cut.begin(), cut.end(),
                     [](const Token& token) { return token.part == job::Part::kBackward; });
}

// Of calls: they hold all reductions of the round, or are rounds of a backward pass of which fewer were made
// than of the forward pass before.
bool calls_cut_backward(const Divergence& d) {
  if (d.story.from_visits || d.story.kind != Story::Kind::kDeletion) return false;
  const job::Tokens& round = d.story.repetition.round;
  bool backward_rounds = !round.empty() && std::all_of(round.begin(), round.end(), [](const Token& token) {
    return token.part == job::Part::kBackward;
  });
  bool unfinished = d.story.repetition.passes.forward > 0 ||
                    (backward_rounds && d.story.backward_before < d.story.forward_before);
  return cuts_rest_of_backward(d) || d.story.leaves_out_all_reductions ||
         d.story.leaves_out_another_backward || unfinished;
}

// Of calls: the others begin the backward pass of what was run forward, and the suspects call from elsewhere.
bool calls_go_past_backward(const Divergence& d) {
  const Story& story = d.story;
  if (story.from_visits || story.expected.empty()) return false;
  const Token &next = story.next[0], &expected = story.expected[0];
  // Another forward pass, or a part of this one, is told by its rounds.
  bool elsewhere = (next.place && next.part == job::Part::kUnknown) || next.part == job::Part::kSide;
  return expected.part == job::Part::kBackward && !expected.reduces && elsewhere && !story.repetition &&
         story.backward_before == 0 && story.forward_before > 0;
}

// "3 rounds of decoder, encoder backward, the others 4", empty where the pass is not made in rounds.
std::string rounds_text(const JobView& view, const Divergence& d) {
  const job::Repetition& r = d.story.repetition;
  if (!r) return {};
  std::string modules = modules_text(view, r.round);
  return times_text(r.told) + " on " + told_text(d) + ", " + times_text(r.others) + " on " + others_text(d) +
         (modules.empty() ? "" : " (" + modules + ")");
}

bool goes_forward(const Token& token) {
  return token.kind == Token::Kind::kStep || token.part == job::Part::kForward;
}

std::optional<Explanation> explain(const JobView& view, const Divergence& d) {
  if (d.story.next.empty()) return std::nullopt;
  bool deletes = d.story.kind == Story::Kind::kDeletion;
  bool by_visits = goes_past_backward(view, d) || (deletes && cuts_backward(view, d));
  bool by_calls = calls_cut_backward(d) || calls_go_past_backward(d) || begins_forward_again(view, d);
  if (!by_visits && (!by_calls || forward_was_shorter(view, d))) return std::nullopt;

  Explanation e;
  e.class_certainty = by_visits ? Certainty::kProven : Certainty::kJudged;
  std::string rounds = rounds_text(view, d);
  bool part_of_it = !rounds.empty() || d.story.backward_before > 0;
  e.summary = who(d) + " made the forward pass but not " + (part_of_it ? "all of " : "") +
              "its backward pass" + step_text(d) + " and went on; from call " +
              std::to_string(d.origin.value_or(d.visible.call)) + " on the ranks do different things; " +
              waiting_at(d);
  const char* what = d.story.from_visits ? " module visits" : " calls";
  if (d.story.forward_before > 0) {
    e.evidence.push_back("forward: the same on both sides, " + std::to_string(d.story.forward_before) + what);
  }
  if (!rounds.empty()) {
    e.evidence.push_back("backward: made " + rounds);
  } else if (d.story.leaves_out_another_backward) {
    e.evidence.push_back("backward: " + modules_text(view, d.story.left_out) +
                         " had one backward pass in this step on " + told_text(d) + ", " + others_text(d) +
                         " make another");
  }
  if (d.step) {
    e.evidence.push_back(std::string(part_of_it ? "the rest of " : "") + "the backward pass of step " +
                         std::to_string(*d.step) + " is missing on " + who(d));
  }
  if (goes_forward(d.story.next[0]))
    e.evidence.push_back(who(d) + " is in the next forward pass while the others are in backward");
  const bool raised = raised_before(view, d).has_value();  // told with the finding, with its remedy
  // A part of the pass that is missing without an exception: an output that the loss does not depend on.
  if (part_of_it && !raised && !goes_forward(d.story.next[0])) {
    e.fix = {
        "An output of the forward pass does not reach the loss on " + told_text(d) +
            ", so that its backward pass never runs: add it with "
            "weight zero, `loss = loss + output.sum() * 0` (a dummy batch or chunk needs this too).",
        "Do not detach, overwrite or drop an output on some ranks only.",
    };
    return e;
  }
  e.fix = {
      "An exception or a NaN check that skips backward on one rank must be agreed: re-raise it, or "
      "all-reduce a flag so that "
      "every rank skips the same step.",
      "Run backward on every rank in every step; for a batch without loss use `(output * 0).sum()`.",
  };
  if (raised) e.fix.erase(e.fix.begin());
  return e;
}

}  // namespace

DSHANG_EXPLAINER(2, "backward-skipped", explain);

}  // namespace dshang::detect
