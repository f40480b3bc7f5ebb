#include "core/job/story.h"

#include <algorithm>
#include <map>

#include "core/job/repetition.h"

namespace dshang::job {
namespace {

constexpr std::size_t kLookAhead = 2048;

constexpr std::size_t kProof = 64;         // tokens that agree behind an edit: more say no more
constexpr std::size_t kCandidates = 256;   // edits tried

Tokens slice(const Tokens& tokens, std::size_t n) {
  return Tokens(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(std::min(n, tokens.size())));
}

std::size_t index_of(const Tokens& tokens, std::uint64_t key, std::size_t from) {
  for (std::size_t i = from; i < tokens.size(); ++i) {
    if (tokens[i].key == key) return i;
  }
  return tokens.size();
}

// How far the two agree from the given positions on.
std::size_t agreement(const Tokens& a, std::size_t at_a, const Tokens& b, std::size_t at_b) {
  std::size_t n = 0;
  while (at_a + n < a.size() && at_b + n < b.size() && a[at_a + n].key == b[at_b + n].key) ++n;
  return n;
}

// One stretch that `in` has more: so long that what follows on it agrees with `with`.
struct Edit {
  std::size_t length = 0;   // in.size() = there is none
  std::size_t proof = 0;    // tokens that agree behind it
  bool to_the_end = false;  // as far as anything is known
  bool whole = false;       // all of `with`
};

Edit edit_at(const Tokens& in, const Tokens& with, std::size_t length) {
  std::size_t known = std::min({in.size() - length, with.size(), kProof});
  std::size_t n = 0;
  while (n < known && in[length + n].key == with[n].key) ++n;
  return {length, n, n == known, n == std::min(with.size(), kProof)};
}

// The shortest edit that is not contradicted at once; else the one that agrees longest.
Edit best_edit(const Tokens& in, const Tokens& with) {
  Edit best{in.size()};
  std::size_t tried = 0;
  for (std::size_t i = 1; !with.empty() && i < in.size() && tried < kCandidates; ++i) {
    if (in[i].key != with[0].key) continue;
    ++tried;
    Edit edit = edit_at(in, with, i);
    if (edit.proof > best.proof) best = edit;
    if (best.proof > 1 || best.to_the_end) break;
  }
  return best;
}

// The shortest edit, if what it adds repeats what stands before it; else the best one.
Edit find_edit(const Tokens& in, const Tokens& with, const Tokens& other, const Tokens& history, bool told_made_more, Repetition& repetition) {
  if (with.empty()) return {in.size()};
  std::size_t first = index_of(in, with[0].key, 1);
  Edit edit = best_edit(in, with);
  if (first < in.size()) {
    repetition = repetition_of_edit(slice(in, first), other, history, told_made_more);
    if (repetition) return edit_at(in, with, first);
  }
  if (edit.length != first && edit.length < in.size()) repetition = repetition_of_edit(slice(in, edit.length), other, history, told_made_more);
  return edit;
}

bool is_loop(const Repetition& repetition) { return repetition && std::min(repetition.told, repetition.others) > 1; }

bool is_boundary(const Token& token) { return token.kind != Token::Kind::kModule && token.kind != Token::Kind::kCall; }

// Length of the shortest stretch, from the start and within one phase, in which both hold the same tokens in another
// order; 0 = none.
std::size_t permuted(const Tokens& a, const Tokens& b) {
  std::map<std::uint64_t, int> balance;
  std::size_t unequal = 0;
  auto add = [&](std::uint64_t key, int by) {
    int& count = balance[key];
    unequal -= count != 0;
    count += by;
    unequal += count != 0;
  };
  for (std::size_t n = 0; n < std::min({a.size(), b.size(), std::size_t{64}}); ++n) {
    if (is_boundary(a[n]) || is_boundary(b[n])) return 0;
    add(a[n].key, 1);
    add(b[n].key, -1);
    if (unequal == 0) return n + 1;
  }
  return 0;
}

bool same_purpose_other_arguments(const Token& a, const Token& b) {
  return a.kind == Token::Kind::kCall && b.kind == Token::Kind::kCall && a.call->op == b.call->op &&
         a.phase == b.phase && a.module == b.module && (a.place == b.place || !a.place || !b.place);
}

// Length of the round that the tokens repeat from their start on; 0 = they do not repeat.
std::size_t period_of(const Tokens& tokens) {
  for (std::size_t p = 1; p <= tokens.size() / 2; ++p) {
    if (agreement(tokens, 0, tokens, p) >= std::min(tokens.size() - p, kLookAhead / 4)) return p;
  }
  return 0;
}

std::ptrdiff_t reductions(const Tokens& tokens, std::size_t count) {
  auto end = tokens.begin() + static_cast<std::ptrdiff_t>(std::min(count, tokens.size()));
  return std::count_if(tokens.begin(), end, [](const Token& token) { return token.reduces; });
}

}  // namespace

bool follows_history(const Tokens& tokens, const Tokens& history) {
  if (tokens.empty()) return false;
  Context context = find_context(history);
  if (context.length == 0 || history[context.end].key != tokens[0].key) return false;
  // What repeats within a round (a run of equal calls) says nothing of how long it goes on: an earlier round must.
  std::size_t period = history.size() - context.end;
  if (period > 1 && context.length >= period) return true;
  const Token& then = history[context.end];
  if (then.call && tokens[0].call && then.call->step != kNoStep && then.call->step != tokens[0].call->step) return true;
  auto begin = history.end() - static_cast<std::ptrdiff_t>(context.length);
  return std::any_of(begin, history.end(), [](const Token& token) { return token.kind == Token::Kind::kStep; });
}

Story tell_story(const Tokens& suspect, const Tokens& other, const Tokens& history) {
  Story story;
  if (!other.empty()) story.expected = {other[0]};
  if (suspect.empty()) {
    story.kind = other.empty() ? Story::Kind::kNone : Story::Kind::kSilent;
    return story;
  }
  story.next = {suspect[0]};
  story.from_visits = suspect[0].kind != Token::Kind::kCall;
  Passes passes = passes_at_end(history);
  story.forward_before = passes.forward;
  story.backward_before = passes.backward;

  // How the others went on, and would have gone on.
  Tokens ahead = other;
  Tokens past = history;
  past.insert(past.end(), other.begin(), other.end());
  Tokens predicted = predict(past, kLookAhead);
  ahead.insert(ahead.end(), predicted.begin(), predicted.end());

  Repetition fewer, more;
  Edit deletion = find_edit(ahead, suspect, other, history, false, fewer);
  Edit insertion = find_edit(suspect, ahead, other, history, true, more);
  bool can_delete = deletion.length < ahead.size(), can_insert = insertion.length < suspect.size();

  auto plain = [](const Edit& edit, bool possible) { return possible && edit.whole && edit.proof > edit.length; };
  std::size_t n = plain(deletion, can_delete) || plain(insertion, can_insert) ? 0 : permuted(suspect, other);
  // Behind the stretch they have to agree again.
  if (n < std::min(suspect.size(), other.size()) && agreement(suspect, n, other, n) == 0) n = 0;
  if (n > 1) {
    story.kind = Story::Kind::kPermutation;
    story.added = slice(suspect, n);
    story.left_out = slice(other, n);
    return story;
  }
  Repetition left = can_delete || can_insert ? Repetition{} : repetition_left(suspect, other, history);
  if (!can_delete && !other.empty() && left.round.size() < 2 && same_purpose_other_arguments(suspect[0], other[0])) {
    story.kind = Story::Kind::kExchange;
    return story;
  }
  if (!can_insert) {
    if (Repetition gone_on = repetition_gone_on(suspect, other, history)) {
      story.kind = Story::Kind::kInsertion;
      story.added = slice(suspect, gone_on.round.size());
      story.repetition = std::move(gone_on);
      return story;
    }
  }
  if (can_delete) {
    Tokens cut = slice(ahead, deletion.length);
    std::ptrdiff_t in_round = reductions(ahead, period_of(ahead));
    story.leaves_out_all_reductions = in_round > 0 && reductions(cut, cut.size()) >= in_round;
    // A forward pass repeated and a backward pass left out read alike in the calls; the second is what happens.
    bool forward_again = story.leaves_out_all_reductions && can_insert && reductions(suspect, insertion.length) == 0;
    bool shorter = !can_insert || deletion.length <= insertion.length;
    if (can_insert && deletion.to_the_end != insertion.to_the_end) shorter = deletion.to_the_end;
    // A loop that was left or gone on with is likelier than a call between its rounds; one round alone makes no loop.
    if (can_insert && is_loop(fewer) != is_loop(more)) shorter = is_loop(fewer);
    if (shorter || forward_again) {
      story.kind = Story::Kind::kDeletion;
      story.repetition = std::move(fewer);
      story.left_out = std::move(cut);
      story.leaves_out_another_backward = is_another_backward(story.left_out, history);
      return story;
    }
  }
  if (can_insert) {
    story.kind = Story::Kind::kInsertion;
    story.added = slice(suspect, insertion.length);
    story.repetition = std::move(more);
    return story;
  }
  story.repetition = std::move(left);
  if (story.repetition.passes.forward > 0) {
    story.forward_before = story.repetition.passes.forward;
    story.backward_before = story.repetition.passes.backward;
  }
  // It left the phase in which the others go on with modules.
  bool left_phase = is_boundary(suspect[0]) && !other.empty() && other[0].kind == Token::Kind::kModule;
  if (left_phase) {
    story.kind = Story::Kind::kDeletion;
    for (const Token& token : other) {
      if (is_boundary(token)) break;
      story.left_out.push_back(token);
    }
    if (!story.repetition) story.repetition = repetition_of_edit(story.left_out, other, history, false);
    return story;
  }
  if (story.repetition) {
    bool goes_on = story.repetition.told > story.repetition.others;
    story.kind = goes_on ? Story::Kind::kInsertion : Story::Kind::kDeletion;
    (goes_on ? story.added : story.left_out) = slice(goes_on ? suspect : other, story.repetition.round.size());
    return story;
  }
  // Never seen before, and what follows on it is not recorded yet.
  bool seen_before = index_of(history, suspect[0].key, 0) < history.size();
  story.kind = seen_before && !is_boundary(suspect[0]) ? Story::Kind::kUnknown : Story::Kind::kInsertion;
  if (story.kind == Story::Kind::kInsertion) story.added = {suspect[0]};
  return story;
}

}  // namespace dshang::job
