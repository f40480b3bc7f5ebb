// module-skipped: a rank left out a module that the others ran and went on behind it, or ran one that they
// did not.
#include <algorithm>

#include "detectors/known_facts.h"
#include "detectors/passes.h"
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
    if (token.part ==
        job::Part::kForward) {  // what a module calls itself: exchanges of experts, partial sums
      enters = true;
      continue;
    }
    std::string op = view.op_name(*witness, *token.call);
    if (op != "all_gather" && op != "reduce_scatter") return false;
  }
  return enters;
}

// Two modules, or weights gathered from two lines of one forward pass or from its backward pass, and nothing
// recorded behind: those that are further on have left out what the others run, or take it later.
bool runs_another_module(const JobView& view, const Divergence& d) {
  const Story& story = d.story;
  if (story.kind != Story::Kind::kUnknown || story.next.empty() || story.expected.empty()) return false;
  const Token &next = story.next[0], &expected = story.expected[0];
  if (expected.part != job::Part::kForward) return false;
  if (next.kind == Token::Kind::kModule && expected.kind == Token::Kind::kModule)
    return next.part == job::Part::kForward && next.module != expected.module;
  const job::RankView *told = view.by_rank(d.told_of), *witness = view.by_rank(d.witness);
  auto gathers = [&](const job::RankView* rank, const Token& token) {
    return rank && token.call && view.op_name(*rank, *token.call) == "all_gather";
  };
  bool other_line =
      next.part == job::Part::kForward && next.place && expected.place && next.place != expected.place;
  return gathers(told, next) && gathers(witness, expected) &&
         (other_line || next.part == job::Part::kBackward);
}

// "Block" where the module was entered in Block.forward; the outermost module, named by its class, is left
// out: as a leaf it would be gathered as a whole.
std::string deciding_class(const JobView& view, const Divergence& d) {
  constexpr std::string_view kForward = ".forward";
  const job::Tokens& at = d.story.kind == Story::Kind::kDeletion ? d.story.expected : d.story.next;
  if (at.empty() || !at[0].place) return {};
  const std::string& function = view.names().text(view.names().place_frame(at[0].place).function);
  if (!std::string_view(function).ends_with(kForward)) return {};
  std::string name = function.substr(0, function.size() - kForward.size());
  const job::RankView* witness = view.by_rank(d.witness);
  if (!witness) return {};
  const auto& visits = witness->records().visits;
  for (std::uint64_t n = visits.first(); n < visits.end(); ++n) {
    if (visits.at(n).kind == flight::VisitKind::kModuleEnter &&
        view.names().text(visits.at(n).module) == name)
      return {};
  }
  return name;
}

void add_remedy(const JobView& view, const Divergence& d, Explanation& e) {
  const std::string decide =
      "Decide the branch from something that is equal on all ranks (a config value, an all-reduced flag).";
  if (!gathers_weights(view, d)) {
    e.evidence.push_back(
        "a module that a rank leaves out gets no gradients there: the reductions of its gradients are not "
        "made on that rank, "
        "or are made in another order");
    e.fix = {
        "Run the module on every rank: where a rank has no input for it, run it on a dummy input and add "
        "`output.sum() * 0` to the "
        "loss (zero weight), so that its gradients are there.",
        "If it is left out on purpose in some steps: DistributedDataParallel reduces with "
        "`find_unused_parameters=True` what a rank "
        "did not use.",
        decide};
    return;
  }
  e.evidence.push_back(
      "in ZeRO-3 entering a module gathers its parameters from all ranks: a module that one rank leaves out "
      "shifts every "
      "later collective of that rank");
  std::string name = deciding_class(view, d);
  e.fix = {
      "Run the module on every rank: where a rank has no input for it, run it on a dummy input and add "
      "`output.sum() * 0` to the "
      "loss (zero weight), so that its gathers and gradients take part.",
      "For experts and other data-dependent branches declare the module that holds the branch a leaf: "
      "`deepspeed.utils.set_z3_leaf_modules(model, [" +
          (name.empty() ? "<its class>" : name) + "])`, or `zero_optimization.leaf_module`.",
      decide};
}

std::optional<Explanation> explain(const JobView& view, const Divergence& d) {
  const Story& story = d.story;
  bool shorter = !story.from_visits && forward_was_shorter(view, d);
  if (story.repetition && !shorter) return std::nullopt;  // it was run, only not as often
  bool skipped = story.kind == Story::Kind::kDeletion && only_modules(view, d, story.left_out);
  bool extra = story.kind == Story::Kind::kInsertion && only_modules(view, d, story.added) &&
               has_modules(story.added) && story.from_visits;
  skipped = skipped || shorter;
  bool other_line = !skipped && !extra && runs_another_module(view, d);
  if (!skipped && !extra && !other_line) return std::nullopt;
  const job::Tokens& tokens = shorter      ? story.expected
                              : skipped    ? story.left_out
                              : other_line ? story.expected
                                           : story.added;
  skipped = skipped || other_line;
  std::string modules = modules_text(view, tokens);
  Explanation e;
  bool in_pass = std::any_of(tokens.begin(), tokens.end(),
                             [](const Token& token) { return token.part != job::Part::kUnknown; });
  e.class_certainty = has_modules(tokens) || (story.places_known && in_pass) ? Certainty::kProven : Certainty::kJudged;
  if (!has_modules(tokens) && !in_pass && !other_line)
    e.evidence.push_back("judged: gathers were left out; that a module makes them is not recorded");
  if (other_line) e.class_certainty = Certainty::kJudged;
  if (modules.empty()) modules = gathers_weights(view, d) ? "a module that gathers its weights" : "a module";
  std::string entered = skipped ? (story.expected.empty() ? "" : place_text(view, story.expected[0]))
                                : (story.next.empty() ? "" : place_text(view, story.next[0]));
  e.summary = who(d) + (skipped ? " left out " : " ran ") + modules +
              (entered.empty() ? "" : " (entered at " + entered + ")") +
              (skipped ? ", which the others run" : ", which the others do not run") + step_text(d) + "; " +
              waiting_at(d);
  if (other_line) e.evidence.push_back("judged: whether it was left out or is taken later is not recorded");
  if (shorter)
    e.evidence.push_back(told_text(d) + " was in its backward pass while " + others_text(d) +
                         " still were in the forward pass; its forward pass was shorter than before");
  add_remedy(view, d, e);
  return e;
}

}  // namespace

DSHANG_EXPLAINER(4, "module-skipped", explain);

}  // namespace dshang::detect
