// argument-mismatch: the ranks make the same call for the same purpose, with another count, type, reduce op
// or root.
#include <algorithm>

#include "detectors/words.h"

namespace dshang::detect {
namespace {

struct Differs {
  bool op = false, count = false, dtype = false, reduce_op = false, root = false;
};

Differs differences(const Divergence& d) {
  const job::Side& first = d.sides[0];
  Differs differs;
  for (const job::Side& side : d.sides) {
    differs.op |= side.op != first.op, differs.count |= side.count != first.count,
        differs.dtype |= side.dtype != first.dtype;
    differs.reduce_op |= side.reduce_op != first.reduce_op, differs.root |= side.root != first.root;
  }
  return differs;
}

std::string text_of(const Differs& differs) {
  std::string text;
  auto add = [&](bool differs_here, const char* name) {
    if (differs_here) text += (text.empty() ? "" : ", ") + std::string(name);
  };
  add(differs.op, "operation"), add(differs.count, "count"), add(differs.dtype, "data type"),
      add(differs.reduce_op, "reduce op");
  add(differs.root, "root");
  return text;
}

// What to do about each, the likeliest first.
std::vector<std::string> fixes_for(const Divergence& d, const Differs& differs) {
  std::vector<std::string> fixes;
  bool all = d.suspects.empty();
  std::string look = "Look at what " + (all ? "the ranks" : job::ranks_text(d.suspects)) +
                     (d.suspects.size() == 1 ? " passes" : " pass") + " there: ";
  if (differs.op)
    fixes.push_back(
        "Make the same operation on every rank: look at the lines above for the condition that leads to "
        "another one.");
  if (differs.dtype) {
    fixes.push_back(
        look + (all ? "the data types differ" : "its data type is another one") +
        ". Cast it to one type on all ranks before "
        "the collective (`tensor.to(torch.float32)`), and check that autocast, fp16 and bf16 are set alike.");
  }
  if (differs.count) {
    fixes.push_back(look +
                    "the tensor comes from another part of the model or from uneven data (a media batch, "
                    "another sequence length); " +
                    (all ? "the shapes differ" : "its shape differs") +
                    " and must be padded or agreed before the collective.");
  }
  if (differs.reduce_op) fixes.push_back("Pass the same reduce op (SUM, MAX, ...) on every rank.");
  if (differs.root) {
    fixes.push_back(
        "Pass the same `src` or `dst` on every rank: a fixed global rank, not one that each rank computes "
        "for itself (`dist.get_rank()`).");
  }
  if (differs.count || differs.dtype || fixes.empty())
    fixes.push_back("Check that all ranks build the model from the same config and checkpoint.");
  return fixes;
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
  const Differs differs = differences(d);
  const bool only_count =
      differs.count && !differs.op && !differs.dtype && !differs.reduce_op && !differs.root;
  std::string values;
  const ToldSides sides = told_sides(d);
  for (const job::Side* side : sides.told) {
    values += (values.empty() ? "" : "; ") + job::ranks_text(side->ranks) + " " + call_text(*side);
  }
  if (!sides.others.empty()) values += "; " + sides.others;
  const std::string what = text_of(differs);
  e.summary = "the " + what + " of " + call_at(d) + (what.find(',') == what.npos ? " differs" : " differ") +
              step_text(d) + ": " + values;
  std::string suspects = d.suspects.empty() ? "the ranks" : job::ranks_text(d.suspects);
  if (only_count && walks_a_collection(view, d)) {
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
  if (only_count && gathers_of_unknown_modules(d)) {
    e.fix = {
        "Under ZeRO-3 the ranks gather different modules here: one of them left out a module. Run it on "
        "every rank, on a dummy input "
        "whose result is multiplied by 0 where there is nothing to do.",
        "Run once more with call sites (`DSHANG_PYTHON_STACKS=1`) or the probe, so that the modules are "
        "named."};
    return e;
  }
  e.fix = fixes_for(d, differs);
  return e;
}

}  // namespace

DSHANG_EXPLAINER(9, "argument-mismatch", explain);

}  // namespace dshang::detect
