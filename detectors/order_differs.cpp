// order-differs: the same calls, or the same modules, in another order; also what is left when the op differs
// and nothing recorded says why.
#include <algorithm>

#include "detectors/collection.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using job::Story;

bool ops_differ(const Divergence& d) {
  return std::any_of(d.sides.begin(), d.sides.end(),
                     [&](const job::Side& side) { return side.op != d.sides[0].op; });
}

// One more of the call directly before, and nothing else is recorded of those who made it (story.cpp).
bool may_be_once_more(const Divergence& d) {
  return d.story.kind == Story::Kind::kUnknown && d.story.leaves_out_all_reductions;
}

std::optional<Explanation> explain(const JobView& view, const Divergence& d) {
  bool permuted = d.story.kind == Story::Kind::kPermutation;
  bool later = d.visible.kind == job::Visible::Kind::kArguments && d.story.kind == Story::Kind::kDeletion &&
               !d.story.from_visits;
  bool unexplained = d.visible.kind == job::Visible::Kind::kArguments &&
                     d.story.kind != Story::Kind::kExchange && ops_differ(d);
  bool items =
      d.visible.kind == job::Visible::Kind::kArguments && !permuted && !later && swaps_items(view, d);
  if (!permuted && !later && !unexplained && !items) return std::nullopt;
  Explanation e;
  e.class_certainty = permuted ? Certainty::kProven : Certainty::kJudged;
  e.summary = who(d) +
              (permuted ? " makes the same calls in another order"
               : later  ? " makes a call that the others make later"
               : items  ? " makes a call that the others make at another place"
                        : " makes another call than the others") +
              step_text(d) + "; " + waiting_at(d);
  if (permuted)
    e.evidence.push_back("the next " + std::to_string(d.story.added.size()) +
                         " are the same on both sides, in another order");
  if (items)
    e.evidence.push_back(
        "judged: both calls were made before, as parts of what is walked through here or in another phase");
  if (may_be_once_more(d)) {
    e.evidence.push_back("judged: " + who(d) +
                         " made the call directly before once more, or left out the backward pass and began the next "
                         "forward pass; without call sites or modules both read alike");
    e.fix = {
        "If it makes a collective that the others do not make (in ZeRO-3 reading, logging or saving a parameter is "
        "one): make it on every rank.",
        "If it skips the backward pass of a batch (an exception, a NaN check): agree on that, so that every rank "
        "skips the same step."};
    return e;
  }
  e.fix = {
      "Make the order the same on every rank: sort what is walked through (a set, a dict filled in another "
      "order, "
      "`os.listdir`) before the collectives.",
      "Seed everything that chooses an order with the same value on all ranks.",
  };
  return e;
}

}  // namespace

DSHANG_EXPLAINER(8, "order-differs", explain);

}  // namespace dshang::detect
