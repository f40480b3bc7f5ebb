// backward-skipped: the forward pass was made, its backward pass, or the rest of it, was not; the rank may already be in
// the next step.
#include <algorithm>

#include "detectors/words.h"

namespace dshang::detect {
namespace {

using job::Story;
using job::Token;

// Of visits: the cut begins within a step and holds its backward pass, or the rest of it, and no forward before.
bool cuts_backward(const JobView& view, const Divergence& d) {
  for (const Token& token : d.story.left_out) {
    const std::string& phase = view.names().text(token.phase);
    if (job::is_backward_phase(phase)) break;
    if (token.kind == Token::Kind::kStep || job::is_forward_phase(phase)) return false;  // more than a backward pass
  }
  if (!in_phase(view, d.story.left_out, job::is_backward_phase)) return false;
  // What follows is no part of the same backward pass: a single module left out of it is `module-skipped`.
  const std::string& next = view.names().text(d.story.next[0].phase);
  return d.story.next[0].kind == Token::Kind::kStep || !job::is_backward_phase(next);
}

std::optional<Explanation> explain(const JobView& view, const Divergence& d) {
  if (d.story.kind != Story::Kind::kDeletion || d.story.next.empty()) return std::nullopt;
  bool by_visits = cuts_backward(view, d);
  bool by_calls = !d.story.from_visits && d.story.leaves_out_all_reductions;
  if (!by_visits && !by_calls) return std::nullopt;

  Explanation e;
  e.class_certainty = by_visits ? Certainty::kProven : Certainty::kJudged;
  e.summary = who(d) + " made the forward pass but not its backward pass" + step_text(d) +
              " and went on; from call " + std::to_string(d.origin.value_or(d.visible.call)) +
              " on the ranks do different things and all wait in " + call_at(d);
  if (d.step) e.evidence.push_back("the backward pass of step " + std::to_string(*d.step) + " is missing on " + who(d));
  if (!d.story.next.empty()) {
    e.evidence.push_back(who(d) + " is in the next forward pass while the others are in backward");
  }
  if (const job::RankView* rank = view.by_rank(d.told_of)) {
    const auto& exceptions = rank->records().exceptions;
    if (!exceptions.empty()) {
      const job::Exception& last = exceptions.at(exceptions.end() - 1);
      e.evidence.push_back("its last exception: " + view.names().text(last.type) + ": " + view.names().text(last.message));
    }
  }
  e.fix = {
      "An exception or a NaN check that skips backward on one rank must be agreed: re-raise it, or all-reduce a flag so that "
      "every rank skips the same step.",
      "Run backward on every rank in every step; for a batch without loss use `(output * 0).sum()`.",
  };
  return e;
}

}  // namespace

DSHANG_EXPLAINER(2, "backward-skipped", explain);

}  // namespace dshang::detect
