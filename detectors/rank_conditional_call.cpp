// rank-conditional-call: a collective made for saving, evaluating, logging or loading by some ranks only.
//
// Two shapes: the suspects inserted calls that the others never make there, or (the others being the majority) left out
// calls of such a phase.  Without phases, calls from a line that no rank calls from in a step are of this kind.
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

// Calls (not visits) that were inserted from lines which the witness has never called from.
bool from_new_lines(const JobView& view, const Divergence& d) {
  const job::RankView* witness = view.by_rank(d.witness);
  if (!witness || d.story.added.empty() || d.story.from_visits) return false;
  const auto& calls = witness->records().calls;
  for (const Token& token : d.story.added) {
    if (token.kind != Token::Kind::kCall || !token.place) return false;
    for (std::uint64_t n = calls.first(); n < calls.end(); ++n) {
      if (calls.at(n).site && view.names().place_of(calls.at(n).site) == token.place) return false;
    }
  }
  return true;
}

std::optional<Explanation> explain(const JobView& view, const Divergence& d) {
  bool inserted = d.story.kind == Story::Kind::kInsertion;
  bool left_out = d.story.kind == Story::Kind::kDeletion;
  if (!inserted && !left_out) return std::nullopt;
  std::string purpose = purpose_of(view, inserted ? d.story.added : d.story.left_out);
  // Still in the same phase: it was not left out, only part of it.
  if (left_out && !d.story.next.empty() && view.names().text(d.story.next[0].phase) == purpose) return std::nullopt;
  if (purpose.empty() && !(inserted && from_new_lines(view, d))) return std::nullopt;

  Explanation e;
  const job::Tokens& tokens = inserted ? d.story.added : d.story.left_out;
  std::string place;
  for (const job::Side& side : d.sides) {
    if (place.empty() && d.told_of >= 0 && std::count(side.ranks.begin(), side.ranks.end(), d.told_of) && side.site) place = *side.site;
  }
  if (!tokens.empty() && tokens[0].place) place = place_text(view, tokens[0]);
  e.class_certainty = purpose.empty() ? Certainty::kJudged : Certainty::kProven;
  std::string what = purpose.empty() ? "a collective" : "collectives for '" + purpose + "'";
  if (inserted) {
    e.summary = who(d) + " made " + what + (place.empty() ? "" : " (" + place + ")") + " that the other ranks do not make" +
                step_text(d) + "; all wait in " + call_at(d);
  } else {
    e.summary = who(d) + " left out " + what + (place.empty() ? "" : " (" + place + ")") + " that the other ranks make" +
                step_text(d) + "; all wait in " + call_at(d);
  }
  e.fix = {
      "Call it on all ranks: in ZeRO-3 save_checkpoint, save_16bit_model, GatheredParameters, evaluation and reading a "
      "parameter are collective; keep only the printing or writing behind `if rank == 0`.",
      "If only one rank shall evaluate, use the bare (unwrapped) module (`model.module`) outside ZeRO-3, so that no buffer is "
      "broadcast.",
  };
  return e;
}

}  // namespace

DSHANG_EXPLAINER(1, "rank-conditional-call", explain);

}  // namespace dshang::detect
