// argument-mismatch: the ranks make the same call for the same purpose, with another count, type, reduce op
// or root.
#include <algorithm>

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
  add(op, "operation"), add(count, "count"), add(dtype, "data type"), add(reduce, "reduce op"),
      add(root, "root");
  return text;
}

bool only_count_differs(const Divergence& d) {
  const job::Side& first = d.sides[0];
  return std::all_of(d.sides.begin(), d.sides.end(), [&](const job::Side& side) {
    return side.op == first.op && side.dtype == first.dtype && side.reduce_op == first.reduce_op &&
           side.root == first.root;
  });
}

// The call directly before was the same operation for the same purpose with yet another count: a collection
// is walked through, and its order may be what differs.
bool walks_a_collection(const JobView& view, const Divergence& d) {
  job::Seq k = d.visible.call;
  for (const job::Member& member : d.comm->members) {
    if (!member.has(k) || !member.has(k - 1)) return false;
    const job::Call &here = member.call(k), &before = member.call(k - 1);
    bool same_purpose = before.op == here.op && before.phase == here.phase && before.module == here.module &&
                        before.step == here.step;
    bool same_line =
        !here.site || !before.site || view.names().place_of(here.site) == view.names().place_of(before.site);
    if (!same_purpose || !same_line || before.count == here.count) return false;
  }
  return true;
}

// Gathers of weights for which nothing says of what module they are; lines are no module, but equal ones are
// one purpose.
bool gathers_of_unknown_modules(const Divergence& d) {
  bool unknown = std::all_of(d.sides.begin(), d.sides.end(),
                             [](const job::Side& side) { return side.op == "all_gather" && !side.module; });
  bool one_line = d.sides[0].site && std::all_of(d.sides.begin(), d.sides.end(), [&](const job::Side& side) {
                    return side.site == d.sides[0].site;
                  });
  return unknown && !one_line;
}

std::optional<Explanation> explain(const JobView& view, const Divergence& d) {
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
  if (only_count_differs(d) && walks_a_collection(view, d)) {
    e.evidence.push_back(
        "the call before is the same operation with another count on all ranks: a collection is walked "
        "through");
    e.fix = {
        "Walk through the collection in the same order on every rank: sort it first (a set, a dict filled in "
        "another order, "
        "`os.listdir`).",
        "If the order is the same, an entry has another shape on " + suspects +
            ": compare the shapes before the collective."};
    return e;
  }
  if (only_count_differs(d) && gathers_of_unknown_modules(d)) {
    e.fix = {
        "Under ZeRO-3 the ranks gather different modules here: one of them left out a module. Run it on "
        "every rank, on a dummy input "
        "whose result is multiplied by 0 where there is nothing to do.",
        "Run once more with call sites (`DSHANG_PYTHON_STACKS=1`) or the probe, so that the modules are "
        "named."};
    return e;
  }
  e.fix = {
      "Look at what " + suspects + (d.suspects.size() == 1 ? " passes" : " pass") +
          " there: the tensor comes from another part of the model or from uneven data (a media "
          "batch, another sequence length); its shape differs and must be padded or agreed before the "
          "collective.",
      "Check that all ranks build the model from the same config and checkpoint.",
  };
  return e;
}

}  // namespace

DSHANG_EXPLAINER(8, "argument-mismatch", explain);

}  // namespace dshang::detect
