#include "core/job/story.h"

#include <algorithm>
#include <map>

namespace dshang::job {
namespace {

constexpr std::size_t kLookAhead = 2048;

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
  Tokens next = predict(history, 1);
  return !next.empty() && next[0].key == tokens[0].key;
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

  // How the others went on, and would have gone on.
  Tokens ahead = other;
  Tokens past = history;
  past.insert(past.end(), other.begin(), other.end());
  Tokens predicted = predict(past, kLookAhead);
  ahead.insert(ahead.end(), predicted.begin(), predicted.end());

  if (std::size_t n = permuted(suspect, other); n > 1) {
    story.kind = Story::Kind::kPermutation;
    story.added.assign(suspect.begin(), suspect.begin() + static_cast<std::ptrdiff_t>(n));
    story.left_out.assign(other.begin(), other.begin() + static_cast<std::ptrdiff_t>(n));
    return story;
  }
  std::size_t deletion = index_of(ahead, suspect[0].key, 1);
  bool can_delete = deletion < ahead.size();
  std::size_t insertion = ahead.empty() ? suspect.size() : index_of(suspect, ahead[0].key, 1);
  bool can_insert = insertion < suspect.size();

  if (!can_delete && !other.empty() && same_purpose_other_arguments(suspect[0], other[0])) {
    story.kind = Story::Kind::kExchange;
    return story;
  }
  if (can_delete) {
    Tokens cut(ahead.begin(), ahead.begin() + static_cast<std::ptrdiff_t>(deletion));
    std::ptrdiff_t in_round = reductions(ahead, period_of(ahead));
    story.leaves_out_all_reductions = in_round > 0 && reductions(cut, cut.size()) >= in_round;
    // A forward pass repeated and a backward pass left out read alike in the calls; the second is what happens.
    bool forward_again = story.leaves_out_all_reductions && can_insert && reductions(suspect, insertion) == 0;
    if (!can_insert || deletion <= insertion || forward_again) {
      story.kind = Story::Kind::kDeletion;
      story.left_out = std::move(cut);
      return story;
    }
  }
  if (can_insert) {
    story.kind = Story::Kind::kInsertion;
    story.added.assign(suspect.begin(), suspect.begin() + static_cast<std::ptrdiff_t>(insertion));
    return story;
  }
  // It left the phase in which the others go on with modules.
  bool left_phase = is_boundary(suspect[0]) && !other.empty() && other[0].kind == Token::Kind::kModule;
  if (left_phase) {
    story.kind = Story::Kind::kDeletion;
    for (const Token& token : other) {
      if (is_boundary(token)) break;
      story.left_out.push_back(token);
    }
    return story;
  }
  // Never seen before, and what follows on it is not recorded yet.
  bool seen_before = index_of(history, suspect[0].key, 0) < history.size();
  story.kind = seen_before && !is_boundary(suspect[0]) ? Story::Kind::kUnknown : Story::Kind::kInsertion;
  if (story.kind == Story::Kind::kInsertion) story.added = {suspect[0]};
  return story;
}

}  // namespace dshang::job
