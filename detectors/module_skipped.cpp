// module-skipped: a rank left out a module that the others ran and went on behind it, or ran one that they
// did not.
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using job::Story;
using job::Token;

// Module visits, or the calls that modules make: weights gathered, gradients reduced.
bool only_modules(const JobView& view, const Divergence& d, const job::Tokens& tokens) {
  const job::RankView* witness = view.by_rank(d.witness);
  bool enters = false;  // a module is gathered when it is entered: reductions alone are none
  for (const Token& token : tokens) {
    enters = enters || token.kind == Token::Kind::kModule || !token.reduces;
    if (token.kind == Token::Kind::kModule || token.module) continue;
    if (token.kind != Token::Kind::kCall || !witness) return false;
    std::string op = view.op_name(*witness, *token.call);
    if (op != "all_gather" && op != "reduce_scatter") return false;
  }
  return enters;
}

std::optional<Explanation> explain(const JobView& view, const Divergence& d) {
  const Story& story = d.story;
  if (story.repetition) return std::nullopt;  // it was run, only not as often
  bool skipped = story.kind == Story::Kind::kDeletion && only_modules(view, d, story.left_out);
  bool extra = story.kind == Story::Kind::kInsertion && only_modules(view, d, story.added) &&
               has_modules(story.added) && story.from_visits;
  if (!skipped && !extra) return std::nullopt;
  const job::Tokens& tokens = skipped ? story.left_out : story.added;
  std::string modules = modules_text(view, tokens);
  Explanation e;
  e.class_certainty = has_modules(tokens) || story.places_known ? Certainty::kProven : Certainty::kJudged;
  if (modules.empty()) modules = "a module that gathers its weights";
  std::string entered = skipped ? (story.expected.empty() ? "" : place_text(view, story.expected[0]))
                                : (story.next.empty() ? "" : place_text(view, story.next[0]));
  e.summary = who(d) + (skipped ? " left out " : " ran ") + modules +
              (entered.empty() ? "" : " (entered at " + entered + ")") +
              (skipped ? ", which the others run" : ", which the others do not run") + step_text(d) +
              "; all wait in " + call_at(d);
  if (skipped && !entered.empty()) e.evidence.push_back("the others entered " + modules + " at " + entered);
  if (skipped && !story.next.empty()) {
    if (std::string at = place_text(view, story.next[0]); !at.empty())
      e.evidence.push_back(who(d) + " went on at " + at);
  }
  e.evidence.push_back(
      "in ZeRO-3 entering a module gathers its parameters from all ranks: a module that one rank leaves out "
      "shifts every "
      "later collective of that rank");
  e.fix = {
      "Run the module on every rank: where a rank has no input for it, run it on a dummy input and add "
      "`output.sum() * 0` to the "
      "loss (zero weight), so that its gathers and gradients take part.",
      "For experts and other data-dependent branches declare the parent a leaf: "
      "`deepspeed.utils.set_z3_leaf_modules(model, [Block])`, or `zero_optimization.leaf_module`.",
      "Decide the branch from something that is equal on all ranks (a config value, an all-reduced flag).",
  };
  return e;
}

}  // namespace

DSHANG_EXPLAINER(4, "module-skipped", explain);

}  // namespace dshang::detect
