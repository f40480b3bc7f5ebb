// uneven-steps: a rank ran out of batches, or made one step more, while the others did not.
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using job::Story;
using job::Token;

std::optional<Explanation> explain(const JobView& view, const Divergence& d) {
  const Story& story = d.story;
  bool exhausted = story.loop_ended || (!story.next.empty() && story.next[0].kind == Token::Kind::kLoopEnd);
  bool other_exhausted = !story.expected.empty() && story.expected[0].kind == Token::Kind::kLoopEnd;
  bool one_more = !story.next.empty() && story.next[0].kind == Token::Kind::kStep &&
                  !story.expected.empty() && other_exhausted;
  one_more = one_more || (story.kind == Story::Kind::kInsertion && !story.added.empty() &&
                          story.added[0].kind == Token::Kind::kStep);
  bool whole_step = story.kind == Story::Kind::kDeletion && !story.left_out.empty() &&
                    story.left_out[0].kind == Token::Kind::kStep;
  if (!exhausted && !one_more && !whole_step) return std::nullopt;
  Explanation e;
  e.class_certainty = Certainty::kProven;
  if (whole_step) {
    std::int64_t last = story.left_out[0].visit->step - 1;
    e.evidence.push_back(who(d) + " made steps up to " + std::to_string(last) + ", the others begin step " +
                         std::to_string(last + 1));
  }
  e.summary = who(d) +
              (exhausted         ? " has no more batches while the others begin another step"
               : whole_step      ? " makes a step less than the others and went on to something else"
               : other_exhausted ? " began another step while the others have no more batches"
                                 : " makes a step more than the others, which went on to something else") +
              step_text(d) + "; all wait in " + call_at(d);
  if (exhausted && !story.next.empty() && story.next[0].visit && story.next[0].visit->detail) {
    e.evidence.push_back("length of its loader: " + view.names().text(story.next[0].visit->detail));
  }
  e.fix = {
      "Give every rank the same number of batches: DistributedSampler with `drop_last=True`, or pad the "
      "shorter ranks.",
      "Stop all ranks together: all-reduce (MIN) a `has_batch` flag before each step.",
  };
  return e;
}

}  // namespace

DSHANG_EXPLAINER(6, "uneven-steps", explain);

}  // namespace dshang::detect
