// rank-conditional-call: a collective made for saving, evaluating, logging or loading by some ranks only.
//
// Two shapes: the suspects inserted calls that the others never make there, or (the others being the
// majority) left out calls of such a phase.  Without phases, calls from a line that no rank calls from in a
// step are of this kind.
#include <algorithm>

#include "detectors/words.h"

namespace dshang::detect {
namespace {

using job::Story;
using job::Token;

std::string purpose_of(const JobView& view, const job::Tokens& tokens) {
  for (const Token& token : tokens) {
    if (job::is_side_phase(view.names().text(token.phase))) return view.names().text(token.phase);
  }
  return {};
}

std::optional<Explanation> explain(const JobView& view, const Divergence& d) {
  if (d.story.repetition) return std::nullopt;  // all make it, some more often
  bool inserted = d.story.kind == Story::Kind::kInsertion;
  bool left_out = d.story.kind == Story::Kind::kDeletion;
  if (!inserted && !left_out) return std::nullopt;
  std::string purpose = purpose_of(view, inserted ? d.story.added : d.story.left_out);
  // Still in the same phase: it was not left out, only part of it.
  if (left_out && !d.story.next.empty() && view.names().text(d.story.next[0].phase) == purpose)
    return std::nullopt;
  if (purpose.empty()) {
    if (!inserted || !from_new_lines(view, d)) return std::nullopt;
    // Outside the step and named for nothing of the kind: it rather left the loop (early_return.cpp).
    if (between_steps(d) && !named_for_side(view, d.story.added[0])) return std::nullopt;
  }

  Explanation e;
  const job::Tokens& tokens = inserted ? d.story.added : d.story.left_out;
  std::string place;
  for (const job::Side& side : d.sides) {
    if (place.empty() && d.told_of >= 0 && std::count(side.ranks.begin(), side.ranks.end(), d.told_of) &&
        side.site)
      place = *side.site;
  }
  if (!tokens.empty() && tokens[0].place) place = place_text(view, tokens[0]);
  e.class_certainty = purpose.empty() ? Certainty::kJudged : Certainty::kProven;
  std::string what = purpose.empty() ? "a collective" : "collectives for '" + purpose + "'";
  if (inserted) {
    e.summary = who(d) + " made " + what + (place.empty() ? "" : " (" + place + ")") +
                " that the other ranks do not make" + step_text(d) + "; all wait in " + call_at(d);
  } else {
    e.summary = who(d) + " left out " + what + (place.empty() ? "" : " (" + place + ")") +
                " that the other ranks make" + step_text(d) + "; all wait in " + call_at(d);
  }
  e.fix = {
      "Call it on all ranks: in ZeRO-3 save_checkpoint, save_16bit_model, GatheredParameters, evaluation and "
      "reading a "
      "parameter are collective; keep only the printing or writing behind `if rank == 0`.",
      "If only one rank shall evaluate, use the bare (unwrapped) module (`model.module`) outside ZeRO-3, so "
      "that no buffer is "
      "broadcast.",
  };
  return e;
}

}  // namespace

DSHANG_EXPLAINER(1, "rank-conditional-call", explain);

}  // namespace dshang::detect
