// repeat-count-differs: the ranks repeat the same round (decode cycles, chunks, micro-batches, batches of an
// evaluation) another number of times.  Rounds that hold a step are uneven_steps.cpp's, backward passes
// without their number of forward passes backward_skipped.cpp's.
//
// What it cannot tell: without modules and call sites a rank that leaves a loop and one that makes a call of
// its own within it look alike where it has made one call only; then the first is said, as judged.
#include <algorithm>

#include "detectors/other_line.h"
#include "detectors/words.h"

namespace dshang::detect {
namespace {

using job::Part;
using job::Token;

enum class Rounds { kGeneration, kEvaluation, kMicroBatches, kChunks, kGathers, kOther };

bool has_word(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return text.find(word) != text.npos; });
}

// Whether the modules of the round were visited in evaluation mode, as far as that is recorded.
bool in_evaluation_mode(const JobView& view, const Divergence& d) {
  const job::RankView* rank = view.by_rank(d.witness);
  const Token& first = d.story.repetition.round[0];
  if (first.visit) return first.visit->training == 0;
  if (!rank || !first.call || !first.module) return false;
  const auto& visits = rank->records().visits;
  for (std::uint64_t n = std::min(first.call->visits_before, visits.end()); n-- > visits.first();) {
    const job::Visit& visit = visits.at(n);
    if (!visit.torn && visit.kind == flight::VisitKind::kModuleEnter) return visit.training == 0;
  }
  return false;
}

// What the innermost names say first; then what the calls are.
Rounds kind_of(const JobView& view, const Divergence& d) {
  const job::Tokens& round = d.story.repetition.round;
  std::vector<std::string> names = names_on_the_way(view, round);
  auto named = [&](std::initializer_list<const char*> words) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return has_word(name, words); });
  };
  auto any = [&](auto property) { return std::any_of(round.begin(), round.end(), property); };
  bool forward = any([](const Token& t) { return t.part == Part::kForward; });
  bool backward = any([](const Token& t) { return t.part == Part::kBackward; });
  bool calls = round[0].kind == Token::Kind::kCall;
  bool reduces = any([](const Token& t) { return t.reduces; });
  bool gathers = any([](const Token& t) { return t.kind == Token::Kind::kCall && !t.reduces; });
  if ((forward && backward) || (calls && reduces && gathers)) return Rounds::kMicroBatches;
  if (!backward && !reduces && named({"generat", "decod", "sampl", "rollout", "beam"}))
    return Rounds::kGeneration;
  if (!backward && named({"eval", "valid", "test", "predict"})) return Rounds::kEvaluation;
  if (in_evaluation_mode(view, d)) return Rounds::kGathers;
  // The same weights again and again: one module, run on chunks.
  if (forward || backward || has_modules(round) || (gathers && round.size() == 1)) return Rounds::kChunks;
  return calls && gathers && !reduces ? Rounds::kGathers : Rounds::kOther;
}

std::vector<std::string> fixes_for(Rounds rounds, const std::string& what) {
  const char* agree =
      "Agree on the number before the loop: all-reduce the local number with MAX over the ranks, and run the "
      "missing rounds ";
  switch (rounds) {
    case Rounds::kGeneration:
      return {
          "Pass `synced_gpus=True` to `generate()`: in ZeRO-3 every rank must go on decoding (on padding) "
          "until all have finished.",
          "Or gather the weights once before generating (`GatheredParameters`, TRL's "
          "`ds3_gather_for_generation`), so that decoding "
          "makes no collective, or give all ranks the same number of new tokens."};
    case Rounds::kEvaluation:
      return {
          "Give every rank the same number of batches in the evaluation: `drop_last=True`, or pad the "
          "shorter ranks "
          "(DistributedSampler pads; a plain or iterable loader does not).",
          std::string(agree) + "on a dummy batch whose result is thrown away."};
    case Rounds::kMicroBatches:
      return {
          "Make the same number of micro-batches on every rank before each optimizer step: the same gradient "
          "accumulation, and where "
          "batches are split by length, synchronise the number over the data-parallel group (all-reduce with "
          "MAX).",
          "A last accumulation window that is shorter on some ranks: drop it on all of them "
          "(`drop_last=True`), or fill it with dummy "
          "batches whose loss is multiplied by 0."};
    case Rounds::kChunks:
      return {std::string(agree) + "on a dummy chunk whose result is added with weight zero (`* 0`): " +
                  what + " gathers its weights in each round (ZeRO-3, FSDP).",
              "Or cut by a number that is the same on all ranks, and pad the last chunk."};
    case Rounds::kGathers:
      return {
          "Only weights are gathered in these rounds, as in generation or evaluation under ZeRO-3. For "
          "`generate()` pass "
          "`synced_gpus=True`; elsewhere run the same number of rounds on every rank (pad the shorter "
          "ones)."};
    case Rounds::kOther:
      break;
  }
  return {
      "Run the loop the same number of times on every rank: drop what is left over (`drop_last=True`), or "
      "pad the shorter ranks.",
      std::string(agree) + "on dummy data."};
}

// "micro-batches", "m0, m1, m2", "forward, backward", "the 6 calls from a06.py:12 decode_cycle", "a round of
// 6 calls".
std::string text_of_round(const JobView& view, const job::Tokens& round) {
  auto has = [&](Part part) {
    return std::any_of(round.begin(), round.end(), [&](const Token& t) { return t.part == part; });
  };
  if (has(Part::kForward) && has(Part::kBackward)) return "micro-batches (forward and backward)";
  if (std::string modules = modules_text(view, round); !modules.empty()) return modules;
  std::vector<std::string> phases;
  for (const Token& token : round) {
    const std::string& phase = view.names().text(token.phase);
    if (token.kind == Token::Kind::kPhase && !phase.empty() &&
        !std::count(phases.begin(), phases.end(), phase))
      phases.push_back(phase);
  }
  std::string text;
  for (const std::string& phase : phases) text += (text.empty() ? "" : ", ") + phase;
  if (!text.empty()) return text;
  std::size_t n = round.size();
  text = n == 1 ? "a call" : "a round of " + std::to_string(n) + " calls";
  std::string at = place_text(view, round[0]), to = place_text(view, round.back());
  if (at.empty()) return text;
  return text + " (" + at + (to == at || to.empty() ? "" : " to " + to) + ")";
}

// How often the rank entered the round's module from the round's place in the step; nullopt where the step's
// beginning is no longer recorded.
std::optional<std::size_t> entered_in_step(const JobView& view, Rank of, const Token& first, std::int64_t step) {
  const job::RankView* rank = view.by_rank(of);
  if (!rank) return std::nullopt;
  const auto& visits = rank->records().visits;
  std::size_t times = 0;
  for (std::uint64_t n = visits.end(); n-- > visits.first();) {
    const job::Visit& visit = visits.at(n);
    if (visit.torn) return std::nullopt;
    if (visit.step < step) return times;
    times += visit.step == step && visit.kind == flight::VisitKind::kModuleEnter &&
             visit.module == first.module && visit.site && view.names().place_of(visit.site) == first.place;
  }
  return std::nullopt;
}

// The first rounds of a step may make other calls than the later ones (weights that are still there) and then
// do not count as rounds.  Visits of the module do; both sides must have as many of these.
std::size_t rounds_before(const JobView& view, const Divergence& d) {
  const job::Repetition& r = d.story.repetition;
  if (!has_modules(r.round) || !d.step) return 0;
  auto told = entered_in_step(view, d.told_of, r.round[0], *d.step);
  auto others = entered_in_step(view, d.witness, r.round[0], *d.step);
  bool fits = told && others && *told >= r.told && *others >= r.others && *told - r.told == *others - r.others;
  return fits ? *told - r.told : 0;
}

std::string count_text(std::size_t n, bool inside) {
  return inside && n > 1 ? "the " + ordinal_text(n) + " time begun" : times_text(n);
}

std::optional<Explanation> explain(const JobView& view, const Divergence& d) {
  const job::Repetition& r = d.story.repetition;
  if (!r) return std::nullopt;
  if (std::any_of(r.round.begin(), r.round.end(),
                  [](const Token& t) { return t.kind == Token::Kind::kStep; }))
    return std::nullopt;
  std::string round = text_of_round(view, r.round);
  Explanation e;
  std::optional<OtherLines> lines = came_through_other_lines(view, d);
  bool named = d.story.from_visits || has_modules(r.round), shown = named && !lines;
  e.class_certainty = shown ? Certainty::kProven : Certainty::kJudged;
  std::string entered = has_modules(r.round) ? place_text(view, r.round[0]) : "";
  std::string phase = r.round[0].kind != Token::Kind::kPhase && r.round[0].phase
                          ? " in " + view.names().text(r.round[0].phase)
                          : "";
  std::size_t before = rounds_before(view, d);
  e.summary = "another number of repetitions" + phase + step_text(d) + ": " + round +
              (entered.empty() ? "" : " (entered at " + entered + ")") + " " +
              count_text(before + r.told, r.told_inside) + " on " + told_text(d) + ", " +
              count_text(before + r.others, r.others_inside) + " on " + others_text(d) + "; " + waiting_at(d);
  if (r.round.size() > 1)
    e.evidence.push_back("one round is " + std::to_string(r.round.size()) +
                         (d.story.from_visits ? " visits" : " calls"));
  if (!named)
    e.evidence.push_back(
        "judged from the calls: the same round stands directly before, without a module that names it");
  if (lines) {
    e.evidence.push_back("judged: the ranks came there through different lines, " + told_text(d) + " through " +
                         view.names().place_text(lines->told) + ", " + others_text(d) + " through " +
                         view.names().place_text(lines->others) + "; one of them may as well have been left out");
  }
  e.fix = fixes_for(kind_of(view, d), round);
  return e;
}

}  // namespace

DSHANG_EXPLAINER(5, "repeat-count-differs", explain);

}  // namespace dshang::detect
