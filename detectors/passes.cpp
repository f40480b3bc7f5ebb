#include "detectors/passes.h"

#include <algorithm>

namespace dshang::detect {
namespace {

using job::Part;
using job::Seq;
using job::Tokens;

constexpr Seq kLookedAt = 8192;  // calls

Tokens tokens_until(const JobView& view, const Divergence& d, Rank rank, Seq until) {
  for (const job::Member& member : d.comm->members) {
    if (member.rank == rank)
      return job::call_tokens(view, member, until > kLookedAt ? until - kLookedAt : 1, until, {});
  }
  return {};
}

// Lengths of the forward passes that a backward pass follows, the newest first.
std::vector<std::size_t> forward_passes(const Tokens& tokens) {
  std::vector<std::size_t> lengths;
  for (std::size_t i = tokens.size(); i-- > 1;) {
    if (tokens[i].part != Part::kBackward || tokens[i - 1].part != Part::kForward) continue;
    std::size_t n = 0;
    while (i > n && tokens[i - 1 - n].part == Part::kForward) ++n;
    if (n < i) lengths.push_back(n);  // else its beginning may not be recorded
    i -= n;
    if (i == 0) break;
  }
  return lengths;
}

}  // namespace

bool forward_was_shorter(const JobView& view, const Divergence& d) {
  const Seq until = std::min(d.origin.value_or(d.visible.call), d.visible.call);
  Tokens mine = tokens_until(view, d, d.told_of, until), theirs = tokens_until(view, d, d.witness, until);
  bool ahead = false;
  for (std::size_t i = 0; i < std::min(mine.size(), theirs.size()); ++i) {
    // Aligned by number: what is missing of one at the end is the call that it has not made.
    std::size_t back = std::min(mine.size(), theirs.size()) - i;
    const job::Token &a = mine[back - 1], &b = theirs[back - 1];
    if (a.call->number != b.call->number) return false;
    if (a.part == Part::kForward && b.part == Part::kForward) break;
    ahead = ahead || (a.part == Part::kBackward && b.part == Part::kForward);
  }
  if (!ahead) return false;
  std::vector<std::size_t> lengths = forward_passes(mine);
  return lengths.size() > 1 && *std::min_element(lengths.begin() + 1, lengths.end()) > lengths[0];
}

bool begins_forward_again(const JobView& view, const Divergence& d) {
  const job::Story& story = d.story;
  if (story.from_visits || story.repetition || story.next.empty() || story.expected.empty()) return false;
  const job::Token& next = story.next[0];
  if (next.part != Part::kForward || story.expected[0].part != Part::kBackward) return false;
  Tokens mine = tokens_until(view, d, d.told_of, next.call->number);
  if (mine.size() < 2) return false;
  std::size_t first = mine.size() - 1;  // of the pass
  while (first > 0 && mine[first - 1].part == Part::kForward) --first;
  return mine.size() - first > 2 && mine[first].key == mine.back().key;
}

}  // namespace dshang::detect
