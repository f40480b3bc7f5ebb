// argument-mismatch: the ranks make the same call for the same purpose, with another count, type, reduce op or root.
#include "detectors/words.h"

namespace dshang::detect {
namespace {

std::string what_differs(const Divergence& d) {
  const job::Side& first = d.sides[0];
  std::string text;
  auto add = [&](bool differs, const char* name) {
    if (differs) text += (text.empty() ? "" : ", ") + std::string(name);
  };
  bool op = false, count = false, dtype = false, reduce = false, root = false;
  for (const job::Side& side : d.sides) {
    op |= side.op != first.op, count |= side.count != first.count, dtype |= side.dtype != first.dtype;
    reduce |= side.reduce_op != first.reduce_op, root |= side.root != first.root;
  }
  add(op, "operation"), add(count, "count"), add(dtype, "data type"), add(reduce, "reduce op"), add(root, "root");
  return text;
}

std::optional<Explanation> explain(const JobView&, const Divergence& d) {
  if (d.visible.kind != job::Visible::Kind::kArguments || d.sides.empty()) return std::nullopt;
  bool same_purpose = d.story.kind == job::Story::Kind::kExchange || d.story.kind == job::Story::Kind::kNone;
  Explanation e;
  e.class_certainty = same_purpose && d.origin_proven ? Certainty::kProven : Certainty::kJudged;
  std::string values;
  for (const job::Side& side : d.sides) {
    values += (values.empty() ? "" : "; ") + job::ranks_text(side.ranks) + " " + call_text(side);
  }
  e.summary = "the " + what_differs(d) + " of " + call_at(d) + " differs" + step_text(d) + ": " + values;
  std::string suspects = d.suspects.empty() ? "the ranks" : job::ranks_text(d.suspects);
  e.fix = {
      "Look at what " + suspects + " passes there: the tensor comes from another part of the model or from uneven data (a media "
      "batch, another sequence length); its shape differs and must be padded or agreed before the collective.",
      "Check that all ranks build the model from the same config and checkpoint.",
  };
  return e;
}

}  // namespace

DSHANG_EXPLAINER(8, "argument-mismatch", explain);

}  // namespace dshang::detect
