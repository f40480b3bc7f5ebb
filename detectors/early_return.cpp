// early-return: the rank left the forward pass after some module, or left the training loop, while the others
// go on. Whether a call from a new line is behind the loop, or in it behind a condition, is not always known
// (loop.h): then both are said. A rank whose process ended normally is found by ended.cpp.
#include "detectors/known_facts.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using job::Story;
using job::Token;

// The others are within a forward pass; the suspect's has ended, and its next one has begun (an exception
// that was caught, a step that was given up).  Where a pass is made more often by some, the others have ended
// theirs as well.
bool began_forward_anew(const JobView& view, const Divergence& d) {
  const Story& story = d.story;
  if (story.next.empty() || story.expected.empty() || !story.from_visits) return false;
  const Token &next = story.next[0], &expected = story.expected[0];
  bool parts = next.kind == Token::Kind::kPhase && job::is_forward_phase(view.names().text(next.phase)) &&
               expected.kind == Token::Kind::kModule &&
               job::is_forward_phase(view.names().text(expected.phase));
  const job::RankView* rank = view.by_rank(d.told_of);
  if (!parts || !rank) return false;
  const auto& visits = rank->records().visits;
  for (std::uint64_t n = next.visit_number; n-- > visits.first();) {
    const job::Visit& visit = visits.at(n);
    if (visit.torn || visit.thread != next.visit->thread || visit.kind == flight::VisitKind::kModuleExit)
      continue;
    return visit.kind == flight::VisitKind::kPhasePop &&
           job::is_forward_phase(view.names().text(visit.phase));
  }
  return false;
}

// It goes on from a line from which nobody called before, with what the others call behind all that they do
// now.
bool skips_to_new_line(const JobView& view, const Divergence& d) {
  const Story& story = d.story;
  bool gone =
      story.kind == Story::Kind::kDeletion || (story.kind == Story::Kind::kInsertion && !story.resumed);
  if (story.from_visits || story.repetition || !gone || story.next.empty() || story.expected.empty())
    return false;
  const Token &next = story.next[0], &expected = story.expected[0];
  bool known = false;  // where the others are: they were there before
  for (const job::Member& member : d.comm->members) {
    if (member.rank != d.witness || !next.place || !next.call) continue;
    for (const job::Call* call : member.calls) {
      if (call->number >= d.visible.call) break;
      job::PlaceId place = call->site ? view.names().place_of(call->site) : 0;
      if (place == next.place) return false;
      known = known || (call->site && place == expected.place);
    }
  }
  return known;
}

// Without any line: a call that belongs to no phase, made behind a step that is over, while the others begin
// the next.
bool calls_between_steps(const JobView& view, const Divergence& d) {
  const job::RankView* told = view.by_rank(d.told_of);
  bool no_lines = told && told->records().python != 1;
  return no_lines && d.story.kind == Story::Kind::kInsertion && !d.story.from_visits && !d.story.resumed &&
         between_steps(d);
}

bool begins_step(const job::Tokens& tokens) {
  return !tokens.empty() && tokens[0].kind == Token::Kind::kStep;
}

std::optional<Explanation> explain(const JobView& view, const Divergence& d) {
  const Story& story = d.story;
  bool left_loop = story.teardown && !story.loop_ended;
  bool left_forward = story.kind == Story::Kind::kDeletion && story.from_visits && story.no_forward_follows &&
                      !story.repetition && !begins_step(story.left_out) &&
                      in_phase(view, story.left_out, job::is_forward_phase) && has_modules(story.left_out);
  // It calls from a line behind the loop: nobody ever called from there in a step.
  bool calls_behind_loop = (story.kind == Story::Kind::kInsertion && !story.resumed && between_steps(d) &&
                            from_new_lines(view, d)) ||
                           skips_to_new_line(view, d) || calls_between_steps(view, d);
  bool anew = !left_loop && !left_forward && began_forward_anew(view, d);
  if (!left_loop && !left_forward && !anew && !calls_behind_loop) return std::nullopt;
  Explanation e;
  e.class_certainty = left_loop || left_forward || anew ? Certainty::kProven : Certainty::kJudged;
  if (calls_behind_loop && !left_loop) {
    std::string at = place_text(view, story.next[0]);
    e.summary = who(d) + " makes a call" + (at.empty() ? "" : " at " + at) +
                " that nobody else makes, while the other ranks go on" + step_text(d) +
                ": it left the training loop, or the call is behind a condition on the rank; " +
                waiting_at(d);
    e.evidence.push_back(
        at.empty() ? "judged: it was made behind a finished step and in no phase; without call sites it "
                     "is not known where"
                   : "judged: nobody called from " + at +
                         " in any step before; whether that line is inside the loop is not recorded");
    e.fix = {
        "If the call is in the loop, behind `if rank == 0:` or another condition: make it on every rank, and "
        "keep only the printing or "
        "writing behind the condition.",
        "If it is behind the loop: leave the loop on all ranks together. All-reduce the stop flag (early "
        "stopping, time limit, `break`) "
        "before it is used, give every rank the same number of batches (`drop_last=True`, "
        "DistributedSampler), and let no rank skip one of its own.",
    };
    return e;
  }
  if (left_loop) {
    e.summary =
        who(d) + " left the training loop while the other ranks go on" + step_text(d) + "; " + waiting_at(d);
    e.fix = {
        "Leave the loop on all ranks together: all-reduce the stop flag (early stopping, time limit, "
        "`break`) before it is used.",
        "Give every rank the same number of batches (`drop_last=True`, DistributedSampler).",
    };
    return e;
  }
  std::string modules = modules_text(view, anew ? story.expected : story.left_out);
  std::string entered = story.expected.empty() ? "" : place_text(view, story.expected[0]);
  const bool gather = gathers_weights(view, d);
  e.summary = who(d) + " returned from the forward pass before " + modules +
              (entered.empty() ? "" : " (entered at " + entered + ")") + (anew ? " and began another" : "") +
              step_text(d) + "; the others " + (gather ? "gather " : "run ") + modules + "; " + waiting_at(d);
  if (!anew) e.evidence.push_back("modules that " + who(d) + " did not reach: " + modules);
  e.fix = {
      std::string(gather ? "In ZeRO-3 every" : "Every") +
          " rank must run every module: do not `return` early from forward on some ranks; run "
          "the remaining modules on a dummy input and multiply the result by 0.",
      "If the early exit depends on data, all-reduce the decision so that all ranks take it together.",
  };
  return e;
}

}  // namespace

DSHANG_EXPLAINER(3, "early-return", explain);

}  // namespace dshang::detect
