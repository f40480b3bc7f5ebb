#include "core/job/repetition.h"

#include <algorithm>
#include <functional>
#include <set>

namespace dshang::job {
namespace {

constexpr std::size_t kLongestRound = 2048;
constexpr std::size_t kRunsLookedAt = 16;  // earlier runs of a round, to see whether their length is fixed

bool equal(const Tokens& a, std::size_t at_a, const Tokens& b, std::size_t at_b, std::size_t n) {
  if (at_a + n > a.size() || at_b + n > b.size()) return false;
  for (std::size_t i = 0; i < n; ++i) {
    if (a[at_a + i].key != b[at_b + i].key) return false;
  }
  return true;
}

Tokens slice(const Tokens& tokens, std::size_t from, std::size_t n) {
  auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(from);
  return Tokens(begin, begin + static_cast<std::ptrdiff_t>(n));
}

// The shortest stretch of which `tokens` is made up of whole rounds.
std::size_t root_length(const Tokens& tokens) {
  for (std::size_t p = 1; p <= tokens.size() / 2; ++p) {
    if (tokens.size() % p == 0 && equal(tokens, 0, tokens, p, tokens.size() - p)) return p;
  }
  return tokens.size();
}

bool names_modules(const Tokens& round) {
  return std::any_of(round.begin(), round.end(),
                     [](const Token& t) { return t.module != 0 || t.kind != Token::Kind::kCall; });
}

bool only_gathers(const Tokens& round) {
  return std::all_of(round.begin(), round.end(),
                     [](const Token& t) { return t.kind == Token::Kind::kCall && !t.reduces; });
}

std::size_t reductions_in(const Tokens& tokens) {
  return static_cast<std::size_t>(
      std::count_if(tokens.begin(), tokens.end(), [](const Token& t) { return t.reduces; }));
}

std::size_t gathers_in(const Tokens& tokens) { return tokens.size() - reductions_in(tokens); }

bool all_in(const Tokens& round, Part part) {
  return std::all_of(round.begin(), round.end(), [&](const Token& t) { return t.part == part; });
}

// Partial sums of layers that are cut over the ranks.
bool reduces_in_pass(const Tokens& round) {
  return gathers_in(round) == 0 && (all_in(round, Part::kForward) || all_in(round, Part::kBackward));
}

bool same_gather(const Token& a, const Token& b) {
  return a.call && b.call && !a.reduces && !b.reduces && a.call->op == b.call->op &&
         a.call->count == b.call->count && a.call->dtype == b.call->dtype;
}

// Forward and backward: the parts say so, or weights are gathered again behind others, and reduced.
bool is_whole_pass(const Tokens& round) {
  auto any = [&](Part part) {
    return std::any_of(round.begin(), round.end(), [&](const Token& t) { return t.part == part; });
  };
  if (any(Part::kForward) && any(Part::kBackward)) return true;
  if (only_gathers(round)) return false;
  // More gathers before the first reduction than one backward pass of as many modules makes.
  std::size_t leading = 0;
  while (leading < round.size() && !round[leading].reduces) ++leading;
  if (reductions_in(round) > 1 && leading > reductions_in(round)) return true;
  for (std::size_t i = 0; i + 2 < round.size(); ++i) {
    if (round[i].reduces || same_gather(round[i], round[i + 1])) continue;
    for (std::size_t j = i + 2; j < round.size(); ++j) {
      if (same_gather(round[i], round[j]) && !round[i + 1].reduces) return true;
    }
  }
  return false;
}

// How many rounds all earlier runs had, where they are parts of a larger whole: layers of one size stand
// behind each other in every forward pass, and that many are meant.  0 = no such number.  Micro-batches are
// no such part: they gather, and between their runs nothing is gathered; nor are whole passes, beside which
// nothing is gathered.
std::size_t fixed_number(const Tokens& history, const Tokens& round) {
  if (is_whole_pass(round)) return 0;
  bool gathers_beside = round.size() == 1 || reduces_in_pass(round);
  std::vector<std::size_t> runs;
  std::size_t gathers_between = 0;
  std::size_t end = history.size() - rounds_at_end(history, round) * round.size();
  while (end >= round.size() && runs.size() < kRunsLookedAt) {
    std::size_t n = 0, behind = end;
    while (end >= round.size() && equal(history, end - round.size(), round, 0, round.size()))
      end -= round.size(), ++n;
    if (n > 0) {
      runs.push_back(n);
      gathers_beside = gathers_beside || (n > 1 && end > 0 && !history[end - 1].reduces) ||
                       (n > 1 && behind < history.size() && !history[behind].reduces);
    } else {
      gathers_between += !history[--end].reduces;
    }
  }
  if (runs.empty() || !gathers_beside) return 0;
  if (runs.size() > 2 && end < round.size()) runs.pop_back();  // its beginning is not recorded
  // A single round elsewhere (weights gathered again in the backward pass) says nothing of the number here.
  std::size_t longest = *std::max_element(runs.begin(), runs.end());
  auto singles = std::erase_if(runs, [&](std::size_t n) { return n == 1 && longest > 2; });
  gathers_between += static_cast<std::size_t>(singles);
  // An evaluation makes several forward passes behind each other.
  std::size_t usual = *std::min_element(runs.begin(), runs.end());
  bool multiples = std::all_of(runs.begin(), runs.end(), [&](std::size_t n) { return n % usual == 0; });
  auto often = static_cast<std::size_t>(std::count(runs.begin(), runs.end(), usual));
  bool gathers = std::any_of(round.begin(), round.end(), [](const Token& t) { return !t.reduces; });
  bool fixed = often == runs.size() || (multiples && usual > 1 && 2 * often >= runs.size());
  return fixed && (gathers_between > 0 || !gathers) ? usual : 0;
}

// Whether `tokens` goes on with the round, as far as it is recorded.
bool goes_on(const Tokens& tokens, const Tokens& round) {
  return !tokens.empty() && equal(tokens, 0, round, 0, std::min(tokens.size(), round.size()));
}

// Rounds begun at the start of `tokens`, and whether the last one may be unfinished.
std::size_t rounds_begun(const Tokens& tokens, const Tokens& round, bool* inside) {
  std::size_t n = 0;
  while (equal(tokens, n * round.size(), round, 0, round.size())) ++n;
  std::size_t rest = tokens.size() - n * round.size();
  // All tokens of the last round are made, but nothing behind it: it is not known to be over.
  if (rest == 0) return *inside = n > 0, n;
  bool begun = tokens[n * round.size()].key == round[0].key;
  *inside = begun;
  return n + begun;
}

// Where no name tells the passes: rounds that gather and reduce, directly behind gathers of the same weights
// that reduce nothing, are the backward pass of those.
Passes passes_by_shape(const Tokens& history, const Tokens& round) {
  Passes passes;
  if (!std::all_of(round.begin(), round.end(),
                   [](const Token& t) { return t.kind == Token::Kind::kCall && t.part == Part::kUnknown; }))
    return passes;
  std::ptrdiff_t gathers =
      std::count_if(round.begin(), round.end(), [](const Token& t) { return !t.reduces; });
  if (gathers == 0 || gathers == static_cast<std::ptrdiff_t>(round.size())) return passes;
  std::size_t rounds = rounds_at_end(history, round);
  passes.backward = rounds * static_cast<std::size_t>(gathers);
  for (std::size_t i = history.size() - rounds * round.size(); i-- > 0 && !history[i].reduces;
       ++passes.forward) {
    bool known = std::any_of(round.begin(), round.end(),
                             [&](const Token& t) { return !t.reduces && same_gather(t, history[i]); });
    if (!known) break;
  }
  return passes;
}

// Whether the round would begin in another step than the last one ended in.
bool is_in_later_step(const Tokens& tokens, const Tokens& history) {
  const Call *first = tokens[0].call, *last = history.back().call;
  return first && last && first->step != kNoStep && last->step != kNoStep && first->step != last->step;
}

// The shortest round of which history ends in at least two, and with which exactly one side goes on.  No
// round holds a step: those that make another number of steps are told so.
Tokens round_left(const Tokens& suspect, const Tokens& other, const Tokens& history) {
  if (suspect.empty() || other.empty()) return {};
  std::size_t size = history.size();
  for (std::size_t p = 1; p <= std::min(size / 2, kLongestRound); ++p) {
    const Token& first = history[size - p];
    if (first.kind == Token::Kind::kStep) return {};
    if ((first.key == suspect[0].key) == (first.key == other[0].key)) continue;
    if (!equal(history, size - p, history, size - 2 * p, p)) continue;
    Tokens round = slice(history, size - p, p);
    if (goes_on(suspect, round) == goes_on(other, round)) continue;
    return is_in_later_step(goes_on(suspect, round) ? suspect : other, history) ? Tokens{} : round;
  }
  return {};
}

Repetition count_left(const Tokens& suspect, const Tokens& other, const Tokens& history, Tokens round) {
  Repetition found;
  found.told = found.others = rounds_at_end(history, round);
  if (goes_on(suspect, round)) found.told += rounds_begun(suspect, round, &found.told_inside);
  if (goes_on(other, round)) found.others += rounds_begun(other, round, &found.others_inside);
  found.round = std::move(round);
  return found;
}

// Whether the token, seen from the end of a history, lies in the step before.
bool begins_before(const Token& token, const Token& last, const Passes& behind) {
  if (token.kind == Token::Kind::kStep) return true;
  if (token.call && last.call && token.call->step != kNoStep && last.call->step != kNoStep &&
      token.call->step != last.call->step)
    return true;
  return token.part == Part::kBackward && behind.forward > 0;  // behind the forward pass lies the step before
}

bool begins_pass(const Tokens& tokens, std::size_t i, Part part) {
  return tokens[i].part == part && (i == 0 || tokens[i - 1].part != part);
}

// No steps are announced.  The suspects go on with what they have always done behind so many passes, and have
// made fewer since they did it last; the others begin another one.
Repetition fewer_passes(const Tokens& suspect, const Tokens& history) {
  std::vector<std::size_t> passes = {0};  // since then, and in the rounds before, the newest first
  std::size_t begin = history.size();     // of the newest
  for (std::size_t i = history.size(); i-- > 0;) {
    if (history[i].key == suspect[0].key) {
      if (i == 0 || history[i - 1].part != Part::kBackward) return {};
      passes.push_back(0);
    }
    if (!begins_pass(history, i, Part::kForward)) continue;
    if (begin == history.size()) begin = i;
    ++passes.back();
  }
  passes.pop_back();  // its beginning may not be recorded
  bool fewer = passes.size() > 1 && passes[0] > 0 && passes[0] < passes[1];
  if (!fewer || std::adjacent_find(passes.begin() + 1, passes.end(), std::not_equal_to<>()) != passes.end())
    return {};
  Repetition found;
  found.told = passes[0];
  found.others = passes[0] + 1;
  found.others_inside = true;
  found.round = slice(history, begin, history.size() - begin);
  return found;
}

}  // namespace

std::size_t rounds_at_end(const Tokens& tokens, const Tokens& round) {
  std::size_t n = 0;
  while (!round.empty() && tokens.size() >= (n + 1) * round.size() &&
         equal(tokens, tokens.size() - (n + 1) * round.size(), round, 0, round.size())) {
    ++n;
  }
  return n;
}

Repetition repetition_of_edit(const Tokens& extra, const Tokens& other, const Tokens& history,
                              bool told_made_more) {
  Repetition found;
  if (extra.empty()) return found;
  Tokens round = slice(extra, 0, root_length(extra));
  std::size_t before = rounds_at_end(history, round);
  if (before == 0 || is_in_later_step(extra, history)) return found;
  std::size_t more = extra.size() / round.size();
  if (!names_modules(round) && fixed_number(history, round) == (told_made_more ? before : before + more))
    return found;
  found.told = found.others = before;
  if (told_made_more) {
    found.told += more;
  } else {
    found.others += rounds_begun(other, round, &found.others_inside);
  }
  found.round = std::move(round);
  return found;
}

Repetition repetition_left(const Tokens& suspect, const Tokens& other, const Tokens& history) {
  Repetition found;
  Tokens round = round_left(suspect, other, history);
  if (round.empty()) return found;
  bool of_modules = std::all_of(round.begin(), round.end(),
                                [](const Token& t) { return t.kind == Token::Kind::kModule && t.phase; });
  Passes passes = all_in(round, Part::kBackward) ? passes_at_end(history) : passes_by_shape(history, round);
  bool unfinished_backward = passes.backward < passes.forward;
  if (!of_modules && !only_gathers(round) && !all_in(round, Part::kSide) && !unfinished_backward)
    return found;
  // In the middle of a loop over layers a call of its own is likelier.
  bool of_layers = round.size() == 1 || reduces_in_pass(round);
  if (of_layers && !names_modules(round) && fixed_number(history, round)) return found;
  found = count_left(suspect, other, history, std::move(round));
  if (unfinished_backward) found.passes = passes;
  return found;
}

Repetition repetition_begun_again(const Tokens& suspect, const Tokens& other, const Tokens& history) {
  if (suspect.empty() || other.empty() || history.empty() || suspect[0].phase == other[0].phase ||
      suspect[0].kind == Token::Kind::kLoopEnd || suspect[0].kind == Token::Kind::kTeardown)
    return {};
  bool in_phase = other[0].phase && other[0].phase == history.back().phase && other[0].part == Part::kSide;
  if (!in_phase || other[0].kind == Token::Kind::kPhase) return {};
  for (std::size_t p = 1; p <= std::min(history.size(), kLongestRound); ++p) {
    const Token& first = history[history.size() - p];
    bool inside = first.phase == other[0].phase && first.kind == other[0].kind;
    if (!inside) return {};
    if (first.key != other[0].key) continue;
    Tokens round = slice(history, history.size() - p, p);
    return is_in_later_step(other, history) ? Repetition{}
                                            : count_left(suspect, other, history, std::move(round));
  }
  return {};
}

Repetition repetition_of_passes(const Tokens& suspect, const Tokens& other, const Tokens& history) {
  if (suspect.empty() || other.empty() || history.empty()) return {};
  const Token &mine = suspect[0], &theirs = other[0], &last = history.back();
  bool more = mine.part == Part::kForward;
  bool one_begins = more != (theirs.part == Part::kForward) && mine.part != Part::kBackward &&
                    theirs.part != Part::kBackward && last.part == Part::kBackward;
  bool calls = mine.call && theirs.call && last.call;
  bool in_one_step = calls && mine.call->step == last.call->step && theirs.call->step == last.call->step;
  if (!one_begins || !in_one_step) return {};
  // Without steps the others may as well be in the next one: only an earlier step tells how many there are.
  if (last.call->step == kNoStep) return more ? Repetition{} : fewer_passes(suspect, history);
  Repetition found;
  std::size_t begin = history.size();
  for (std::size_t i = history.size(); i-- > 0 && history[i].call->step == last.call->step;) {
    bool begins = history[i].part == Part::kForward && (i == 0 || history[i - 1].part != Part::kForward ||
                                                        history[i - 1].call->step != last.call->step);
    if (!begins) continue;
    if (begin == history.size()) begin = i;
    ++found.told;
  }
  if (found.told == 0) return {};
  found.round = slice(history, begin, history.size() - begin);
  found.others = found.told + !more;
  found.told += more;
  (more ? found.told_inside : found.others_inside) = true;
  return found;
}

Repetition repetition_gone_on(const Tokens& suspect, const Tokens& other, const Tokens& history) {
  Tokens round = round_left(suspect, other, history);
  if (round.empty() || !goes_on(suspect, round)) return {};
  // A reduction alone is no loop: what the others make in its place was left out.
  if (round.size() == 1 && round[0].reduces && !names_modules(round)) return {};
  std::size_t before = rounds_at_end(history, round);
  Tokens past(history.begin(), history.end() - static_cast<std::ptrdiff_t>(before * round.size()));
  bool left_before = false;
  for (std::size_t i = round.size(); i < past.size() && !left_before; ++i) {
    left_before = past[i].key == other[0].key && equal(past, i - round.size(), round, 0, round.size());
  }
  if (!left_before || (!names_modules(round) && fixed_number(history, round) == before)) return {};
  return count_left(suspect, other, history, std::move(round));
}

bool holds_step(const Tokens& round) {
  auto any = [&](auto property) { return std::any_of(round.begin(), round.end(), property); };
  return any([](const Token& t) { return t.call && t.part == Part::kBackward && t.call->step == kNoStep; }) &&
         any([](const Token& t) { return t.call && t.part == Part::kUnknown && t.place && t.reduces; });
}

bool is_backward_of_last(const Tokens& left_out, const Tokens& history) {
  std::size_t gathers = 0;
  bool known = std::any_of(left_out.begin(), left_out.end(), [](const Token& t) {
    return t.kind != Token::Kind::kCall || t.part != Part::kUnknown;
  });
  if (known || reductions_in(left_out) == 0) return false;
  while (gathers < history.size() && !history[history.size() - 1 - gathers].reduces) ++gathers;
  Tokens last = slice(history, history.size() - gathers, gathers);
  return gathers > 1 &&
         std::all_of(last.begin(), last.end(),
                     [&](const Token& gather) {
                       return std::any_of(left_out.begin(), left_out.end(),
                                          [&](const Token& t) { return same_gather(t, gather); });
                     }) &&
         gathers_in(left_out) >= gathers;
}

Passes passes_at_end(const Tokens& history) {
  Passes passes, phases;  // phases alone: where no module is visited and calls are not what is compared
  for (std::size_t i = history.size(); i-- > 0;) {
    const Token& token = history[i];
    if (begins_before(token, history.back(), passes.forward ? passes : phases)) break;
    bool counts = token.kind == Token::Kind::kModule || (token.kind == Token::Kind::kCall && !token.reduces);
    Passes& counted = counts ? passes : phases;
    if (!counts && token.kind != Token::Kind::kPhase) continue;
    counted.forward += token.part == Part::kForward;
    counted.backward += token.part == Part::kBackward;
  }
  if (passes.forward + passes.backward > 0) return passes;
  return phases.backward == 0 ? phases : Passes{};  // of stages that take turns no number is known
}

bool is_another_backward(const Tokens& left_out, const Tokens& history) {
  std::set<NameId> missing;
  for (const Token& token : left_out) {
    if (token.part != Part::kBackward) return false;
    if (token.module) missing.insert(token.module);
  }
  if (missing.empty()) return false;
  Passes passes;
  for (std::size_t i = history.size(); i-- > 0 && !missing.empty();) {
    const Token& token = history[i];
    if (begins_before(token, history.back(), passes)) break;
    passes.forward += token.part == Part::kForward;
    if (token.part == Part::kBackward) missing.erase(token.module);
  }
  return missing.empty();
}

}  // namespace dshang::job
