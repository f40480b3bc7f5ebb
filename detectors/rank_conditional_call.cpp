// rank-conditional-call: a collective made for saving, evaluating, logging or loading by some ranks only.
//
// Two shapes: the suspects inserted calls that the others never make there, or (the others being the
// majority) left out calls of such a phase.  Without phases, calls from a line that no rank calls from in a
// step are of this kind.  So are passes of two models, or of two losses, that the ranks make from different lines.
#include <algorithm>

#include "detectors/loop.h"
#include "detectors/other_line.h"
#include "detectors/own_call.h"
#include "detectors/side_function.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using job::Story;
using job::Token;

constexpr const char* kGather = "gather";
constexpr const char* kEvaluation = "evaluation";

// Nobody on the other side called from its line before they parted.
bool is_new_line(const JobView& view, const Divergence& d, const Token& token) {
  const job::RankView* witness = view.by_rank(d.witness);
  if (!witness || !token.place) return false;
  for (const job::Member& member : d.comm->members) {
    if (member.rank != d.witness) continue;
    for (const job::Call* call : member.calls) {
      if (call->number >= d.visible.call) break;
      if (call->site && view.names().place_of(call->site) == token.place) return false;
    }
  }
  return true;
}

// A forward pass in evaluation mode that begins where the other side is in no pass: a validation, and no
// frozen part of the model.
bool is_evaluation(const job::Tokens& tokens, const job::Tokens& other_side) {
  auto module = std::find_if(tokens.begin(), tokens.end(),
                             [](const Token& token) { return token.kind == Token::Kind::kModule; });
  bool in_pass = !other_side.empty() &&
                 (other_side[0].part == job::Part::kForward || other_side[0].part == job::Part::kBackward);
  return module != tokens.end() && job::is_evaluated(*module) && !in_pass;
}

std::string purpose_of(const JobView& view, const job::Tokens& tokens, const job::Tokens& other_side) {
  for (const Token& token : tokens) {
    if (job::is_side_phase(view.names().text(token.phase))) return view.names().text(token.phase);
  }
  if (is_evaluation(tokens, other_side)) return kEvaluation;
  // deepspeed.zero.GatheredParameters, as the probe names it; further on it is a part of what stands before
  // it.
  return !tokens.empty() && view.names().text(tokens[0].phase) == kGather ? kGather : "";
}

// Whether DeepSpeed made this call because a parameter of ZeRO-3 was touched outside its module
// (ZeROOrderedDict, since 0.3.11).
bool of_touched_parameter(const JobView& view, const Token& token) {
  if (!token.call || !token.call->site) return false;
  const job::Names& names = view.names();
  const std::vector<job::FrameName>& frames = names.site(token.call->site).frames;
  return std::any_of(frames.begin(), frames.end(), [&](const job::FrameName& frame) {
    return names.text(frame.function).ends_with("__getitem__") &&
           names.text(frame.file).ends_with("deepspeed/runtime/zero/parameter_offload.py");
  });
}

std::vector<std::string> fixes_for_touched() {
  return {
      "Register the parameter with the module that uses it, on all ranks and before the training: "
      "`deepspeed.zero.register_external_parameter(module, parameter)`; it is then gathered with that module "
      "on "
      "every rank.",
      "Or touch it on every rank in every step (times 0 where it is not wanted), or call the module that "
      "owns "
      "it."};
}

std::vector<std::string> fixes_for(const std::string& purpose, bool named) {
  if (purpose.empty() && !named) {
    return {
        "Make the call on every rank: take it out of the condition (`if rank == 0:`, one on data that "
        "differs, an `except` block), and keep only the "
        "printing or writing behind it. torch.distributed's calls, reading a metric of all ranks and "
        "barriers are collective.",
        "If it saves, evaluates, logs or loads: in ZeRO-3 save_checkpoint, save_16bit_model, "
        "GatheredParameters, evaluation and "
        "reading a parameter are collective as well."};
  }
  if (purpose == kGather) {
    return {
        "Enter `GatheredParameters` on all ranks: it gathers the parameters from every rank, and gives them "
        "back together. Keep only what "
        "is done with them behind `if rank == 0:` (with `modifier_rank=0` where they are changed).",
        "To read one parameter only, take `deepspeed.utils.safe_get_full_fp32_param`, on all ranks too."};
  }
  return {
      "Call it on all ranks: in ZeRO-3 save_checkpoint, save_16bit_model, GatheredParameters, evaluation and "
      "reading a "
      "parameter are collective; keep only the printing or writing behind `if rank == 0`.",
      "If only one rank shall evaluate, use the bare (unwrapped) module (`model.module`) outside ZeRO-3, so "
      "that no buffer is "
      "broadcast.",
  };
}

// The newest call of the rank in a phase of that name.
const job::Call* newest_in(const JobView& view, const job::RankView& rank, const std::string& phase) {
  const auto& calls = rank.records().calls;
  for (std::uint64_t n = calls.end(); n-- > calls.first();) {
    const job::Call& call = calls.at(n);
    if (!call.torn && view.names().text(call.phase) == phase) return &call;
  }
  return nullptr;
}

// Saving and the like may as well stand behind the loop, where the rank has come too early.
void tell_of_the_loop(const JobView& view, Rank rank, const std::string& purpose, Explanation& e) {
  const job::RankView* told = view.by_rank(rank);
  const std::string phase = purpose == kEvaluation ? "forward" : purpose;
  const job::Call* call = told ? newest_in(view, *told, phase) : nullptr;
  if (!call || purpose == kGather || is_in_loop(view, *told, *call)) return;
  e.class_certainty = Certainty::kJudged;
  e.evidence.push_back("judged: whether '" + purpose +
                       "' is called inside the loop or behind it is not recorded");
  e.fix.push_back(
      "If every rank calls it, behind the loop: " + job::ranks_text({rank}) +
      " left the loop early; give all ranks the same number of batches and steps, and leave the loop "
      "together.");
}

// The side that is in such a phase is the one to speak of, where neither is singled out.
std::optional<Explanation> made_by_others(const JobView& view, const Divergence& d) {
  if (!others_save_or_evaluate(view, d)) return std::nullopt;
  const Token& made = d.story.expected[0];
  std::string purpose = view.names().text(made.phase), place = place_text(view, made);
  Explanation e;
  e.class_certainty = Certainty::kProven;
  e.summary = others_text(d) + " made collectives for '" + purpose + "'" +
              (place.empty() ? "" : " (" + place + ")") + " that " + told_text(d) + " does not make" +
              step_text(d) + "; " + waiting_at(d);
  e.fix = fixes_for(purpose, false);
  tell_of_the_loop(view, d.witness, purpose, e);
  return e;
}

bool is_plain(const job::Tokens& tokens) {
  return std::all_of(tokens.begin(), tokens.end(), [](const Token& token) {
    return token.call && !token.module &&
           (token.part == job::Part::kUnknown || token.part == job::Part::kSide);
  });
}

// Gathers and reductions of weights, as modules make them.  With lines: several in a row from one of them,
// before a gather of the suspects from another; a line that calls torch.distributed itself is no module's.
bool may_be_modules(const JobView& view, const Divergence& d) {
  const job::RankView *witness = view.by_rank(d.witness), *told = view.by_rank(d.told_of);
  const job::Tokens& left_out = d.story.left_out;
  if (!witness || !told) return false;
  bool any_place =
      std::any_of(left_out.begin(), left_out.end(), [](const Token& token) { return token.place; });
  bool one_place = std::all_of(left_out.begin(), left_out.end(),
                               [&](const Token& token) { return token.place == left_out[0].place; });
  if (any_place && (left_out.size() < 2 || !one_place || is_own_call(view, *left_out[0].call) ||
                    view.op_name(*told, *d.story.next[0].call) != "all_gather"))
    return false;
  return std::all_of(left_out.begin(), left_out.end(), [&](const Token& token) {
    std::string op = view.op_name(*witness, *token.call);
    return op == "all_gather" || op == "reduce_scatter";
  });
}

// The others' call is left out, rather than made later: the suspects are in a later step, or go on from
// another line or phase with what they knew before.
bool leaves_out_plain_calls(const JobView& view, const Divergence& d) {
  const Story& story = d.story;
  if (story.from_visits || story.kind != Story::Kind::kDeletion || story.next.empty() ||
      story.left_out.empty())
    return false;
  if (story.leaves_out_all_reductions || is_new_line(view, d, story.next[0])) return false;
  if (d.suspects.empty() && story.is_new) return false;  // rather made by the others alone
  bool plain = is_plain(story.left_out);
  const Token &next = story.next[0], &first = story.left_out[0];
  if (!plain || !next.call || !first.call) return false;
  bool steps = first.call->step != job::kNoStep && next.call->step != job::kNoStep;
  if (first.phase != next.phase || (steps && next.call->step > first.call->step)) return true;
  if (may_be_modules(view, d)) return false;
  return story.came_round ||
         (!steps && first.place && first.place != next.place);  // else it may come later in the step
}

// Without lines: what they made more is in no other's program, or in a step that the others have left; and
// they are in the loop, since they go on as the others do.
bool adds_plain_calls(const Divergence& d) {
  const Story& story = d.story;
  if (story.kind != Story::Kind::kInsertion || !story.resumed || story.added.empty() ||
      !is_plain(story.added))
    return false;
  const job::Call* theirs = story.expected.empty() ? nullptr : story.expected[0].call;
  std::int64_t step = story.added[0].call->step;
  bool left_behind = theirs && step != job::kNoStep && theirs->step != job::kNoStep && step < theirs->step;
  return story.is_new || left_behind;
}

// In a part of the program that is past the loop, or past the step.
bool leaves_loop(const Divergence& d) {
  using Kind = Token::Kind;
  auto ends = [](const job::Tokens& tokens) {
    return !tokens.empty() && (tokens[0].kind == Kind::kLoopEnd || tokens[0].kind == Kind::kTeardown);
  };
  bool whole_step = !d.story.left_out.empty() && d.story.left_out[0].kind == Kind::kStep;
  return ends(d.story.next) || whole_step;
}

// The others are in the backward pass of this step, which the suspects have not made.
bool in_backward(const JobView& view, const Divergence& d) {
  const Story& story = d.story;
  return story.from_visits && !story.expected.empty() && story.backward_before < story.forward_before &&
         job::is_backward_phase(view.names().text(story.expected[0].phase));
}

// The call that begins a round, made once more: the rest of the round may as well be missing.
std::string or_left_out(const JobView& view, const Divergence& d) {
  const job::Tokens& tokens = d.story.or_left_out;
  if (tokens.empty() || !is_plain(tokens)) return "";
  std::string place = place_text(view, tokens[0]);
  return ", or left out " + (tokens.size() == 1 ? "one" : std::to_string(tokens.size())) + " that they make" +
         (place.empty() ? "" : " (" + place + ")");
}

// One side is in a function named for it, which the other has not entered.
std::optional<Explanation> made_in_side_function(const JobView& view, const Divergence& d) {
  std::string left_out = side_function_left_out(view, d), added = side_function_added(view, d);
  const std::string& function = left_out.empty() ? added : left_out;
  if (function.empty()) return std::nullopt;
  const Token& made = left_out.empty() ? d.story.next[0] : d.story.expected[0];
  std::string place = place_text(view, made);
  std::string what = " collectives in '" + function + "'" + (place.empty() ? "" : " (" + place + ")");
  Explanation e;
  e.class_certainty = Certainty::kJudged;
  if (!left_out.empty() && d.suspects.empty()) {
    e.summary = others_text(d) + " made" + what + " that " + told_text(d) + " does not make";
  } else if (!left_out.empty()) {
    e.summary = who(d) + " left out" + what + " that the other ranks make";
  } else {
    e.summary = who(d) + " made" + what + " that the other ranks do not make";
  }
  e.summary += step_text(d) + "; " + waiting_at(d);
  e.evidence.push_back("judged by the name of the function on the way to the call: " +
                       (left_out.empty() ? others_text(d) : told_text(d)) + " did not enter it there");
  e.fix = fixes_for(function, true);
  return e;
}

// What they did before looks alike and was another part of the program: one of several updates or passes of a step.
std::optional<Explanation> made_in_other_lines(const JobView& view, const Divergence& d) {
  std::optional<OtherLines> lines = came_through_other_lines(view, d);
  const job::Names& names = view.names();
  // In one function they rather are rounds of a loop, of which the last one has a line of its own.
  if (!lines || names.place_frame(lines->told).function == names.place_frame(lines->others).function)
    return std::nullopt;
  std::string mine = names.place_text(lines->told), theirs = names.place_text(lines->others);
  Explanation e;
  e.class_certainty = Certainty::kJudged;
  e.summary = "another part of the program" + step_text(d) + ": " + told_text(d) + " went on at " + mine + ", " +
              others_text(d) + " at " + theirs + ", and the passes made there look alike; " + waiting_at(d);
  e.evidence.push_back("before that both were in the same lines at the same time, in these two as well");
  e.evidence.push_back("judged: " + told_text(d) + " left out what the others do at " + theirs +
                       ", or did once more what stands at " + mine);
  e.fix = {
      "Make every pass and update of a step on every rank, in the same order: take it out of the condition (one on the "
      "loss, on a balance of two models, on data that differs), or all-reduce what decides, so that all ranks take it "
      "together.",
      "To do without its effect on one rank only, run it there and multiply the loss by 0.",
  };
  return e;
}

std::optional<Explanation> explain(const JobView& view, const Divergence& d) {
  bool by_line = d.story.kind == Story::Kind::kInsertion && from_new_lines(view, d);  // says it already
  if (!leaves_loop(d) && !in_backward(view, d) && !by_line) {
    if (std::optional<Explanation> e = made_in_side_function(view, d)) return e;
  }
  if (std::optional<Explanation> e = made_in_other_lines(view, d)) return e;
  if (d.story.repetition) return std::nullopt;  // all make it, some more often
  if (leaves_loop(d) || in_backward(view, d)) return std::nullopt;
  if (std::optional<Explanation> e = made_by_others(view, d)) return e;
  bool inserted = d.story.kind == Story::Kind::kInsertion;
  bool left_out = d.story.kind == Story::Kind::kDeletion;
  if (!inserted && !left_out) return std::nullopt;
  std::string purpose = inserted ? purpose_of(view, d.story.added, d.story.expected)
                                 : purpose_of(view, d.story.left_out, d.story.next);
  // Still in the same phase: it was not left out, only part of it.
  if (left_out && !purpose.empty() && !d.story.next.empty() &&
      view.names().text(d.story.next[0].phase) == purpose)
    return std::nullopt;
  bool in_loop = false;
  bool touched = inserted && !d.story.added.empty() && of_touched_parameter(view, d.story.added[0]);
  bool plain = purpose.empty() && !touched && (leaves_out_plain_calls(view, d) || adds_plain_calls(d));
  if (purpose.empty() && !touched && !plain) {
    if (!inserted || !from_new_lines(view, d)) return std::nullopt;
    // Outside the step and named for nothing of the kind: it rather left the loop (early_return.cpp).
    const job::RankView* told = view.by_rank(d.told_of);
    in_loop = told && d.story.added[0].call && is_in_loop(view, *told, *d.story.added[0].call);
    if (between_steps(d) && !in_loop && !d.story.resumed && !named_for_side(view, d.story.added[0]))
      return std::nullopt;
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
  e.class_certainty = purpose.empty() && !touched ? Certainty::kJudged : Certainty::kProven;
  std::string what = touched              ? "a gather of a parameter that belongs to another module"
                     : purpose.empty()    ? "a collective"
                     : purpose == kGather ? "collectives of GatheredParameters"
                                          : "collectives for '" + purpose + "'";
  if (inserted) {
    e.summary = who(d) + " made " + what + (place.empty() ? "" : " (" + place + ")") +
                " that the other ranks do not make" + or_left_out(view, d) + step_text(d) + "; " +
                waiting_at(d);
  } else {
    e.summary = who(d) + " left out " + what + (place.empty() ? "" : " (" + place + ")") +
                " that the other ranks make" + step_text(d) + "; " + waiting_at(d);
  }
  if (in_loop)
    e.evidence.push_back(who(d) +
                         " is still in the loop: the call lies between lines that it passes in every step");
  e.fix =
      touched ? fixes_for_touched() : fixes_for(purpose, inserted && named_for_side(view, d.story.added[0]));
  if (inserted && !purpose.empty() && !touched) tell_of_the_loop(view, d.told_of, purpose, e);
  return e;
}

}  // namespace

DSHANG_EXPLAINER(1, "rank-conditional-call", explain);

}  // namespace dshang::detect
