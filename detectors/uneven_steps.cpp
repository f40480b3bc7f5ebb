// uneven-steps: a rank ran out of batches, or made one step more, while the others did not.
//
// Where the loaders are equally long, the rank that has no more batches took one without making a step with
// it.  Why (a `continue`, an exception that was swallowed) is not recorded unless the exception left a module
// or a call of the framework.
#include "detectors/known_facts.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using job::Story;
using job::Token;

// Of the loader that `told` has finished, and of the loader of the rank that it is compared with; "" not
// known.
struct Lengths {
  std::string told, other;
  bool equal() const { return !told.empty() && told == other; }
};

Lengths loader_lengths(const JobView& view, const Divergence& d, const Token* end) {
  Lengths lengths;
  const job::RankView *told = view.by_rank(d.told_of), *other = view.by_rank(d.witness);
  if (end && end->visit && end->visit->detail) lengths.told = view.names().text(end->visit->detail);
  if (lengths.told.empty() && told) lengths.told = fact_of(view, *told, {"loader.length"});
  if (other) lengths.other = fact_of(view, *other, {"loader.length"});
  return lengths;
}

std::optional<Explanation> explain(const JobView& view, const Divergence& d) {
  const Story& story = d.story;
  if (others_save_or_evaluate(view, d)) return std::nullopt;
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
  bool at_end = !story.next.empty() && story.next[0].kind == Token::Kind::kLoopEnd;
  Lengths lengths = exhausted ? loader_lengths(view, d, at_end ? &story.next[0] : nullptr) : Lengths{};
  bool batch_lost = lengths.equal();
  if (batch_lost) e.class_certainty = Certainty::kJudged;
  e.summary = who(d) +
              (batch_lost   ? " took a batch without making a step with it (a skipped batch, or a swallowed "
                              "exception), and has no "
                              "more batches while the others begin another step"
               : exhausted  ? " has no more batches while the others begin another step"
               : whole_step ? " makes a step less than the others and went on to something else"
               : other_exhausted ? " began another step while the others have no more batches"
                                 : " makes a step more than the others, which went on to something else") +
              step_text(d) + "; " + waiting_at(d);
  if (!lengths.told.empty()) {
    e.evidence.push_back("length of its loader: " + lengths.told +
                         (lengths.other.empty()
                              ? ""
                              : ", of that of rank " + std::to_string(d.witness) + ": " + lengths.other));
  }
  if (batch_lost) {
    e.evidence.push_back(
        "judged: the loaders are equally long, so a batch was taken and no step was made with it");
    e.fix = {
        "Make a step with every batch that a rank takes, or skip it on all ranks: all-reduce a flag before a "
        "`continue`, and do not swallow "
        "an exception (a bad sample, a NaN) on one rank only.",
        "Stop all ranks together: all-reduce (MIN) a `has_batch` flag before each step.",
    };
    return e;
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
