#include "core/job/edit.h"

#include <algorithm>

#include "core/job/repetition.h"

namespace dshang::job {
namespace {

constexpr std::size_t kProof = 64;          // tokens that agree behind an edit: more say no more
constexpr std::size_t kLongestTried = 512;  // tokens of a round
constexpr std::size_t kCandidates = 256;    // edits tried

Edit edit_at(const Tokens& in, const Tokens& with, std::size_t length) {
  std::size_t known = std::min({in.size() - length, with.size(), kProof});
  std::size_t n = 0;
  while (n < known && in[length + n].key == with[n].key) ++n;
  return {length, n, n == known, n == std::min(with.size(), kProof)};
}

// Whether in[i] may be the same as `first`; of what is predicted, from `recorded` on, the step is not known.
bool may_stand_for(const Tokens& in, std::size_t recorded, std::size_t i, const Token& first) {
  return in[i].key == first.key && (i >= recorded || !steps_differ(in[i], first));
}

// The shortest edit that is not contradicted at once; else the one that agrees longest.
Edit best_edit(const Tokens& in, std::size_t recorded, const Tokens& with) {
  Edit best{in.size()};
  std::size_t tried = 0;
  for (std::size_t i = 1; !with.empty() && i < in.size() && tried < kCandidates; ++i) {
    if (!may_stand_for(in, recorded, i, with[0])) continue;
    ++tried;
    Edit edit = edit_at(in, with, i);
    if (edit.proof > best.proof) best = edit;
    if (best.proof > 1 || best.to_the_end) break;
  }
  return best;
}

}  // namespace

Tokens slice(const Tokens& tokens, std::size_t n) {
  return Tokens(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(std::min(n, tokens.size())));
}

std::size_t index_of(const Tokens& tokens, std::uint64_t key, std::size_t from) {
  for (std::size_t i = from; i < tokens.size(); ++i) {
    if (tokens[i].key == key) return i;
  }
  return tokens.size();
}

std::size_t agreement(const Tokens& a, std::size_t at_a, const Tokens& b, std::size_t at_b) {
  std::size_t n = 0;
  while (at_a + n < a.size() && at_b + n < b.size() && a[at_a + n].key == b[at_b + n].key) ++n;
  return n;
}

bool is_end(const Token& token) {
  return token.kind == Token::Kind::kLoopEnd || token.kind == Token::Kind::kTeardown;
}

bool steps_differ(const Token& a, const Token& b) {
  if (is_end(a) || is_end(b)) return false;
  auto step = [](const Token& token) {  // what stands behind a loop still has the step of its end
    if (token.call) return token.call->step;
    return token.kind == Token::Kind::kStep ? token.visit->step : kNoStep;
  };
  return step(a) != kNoStep && step(b) != kNoStep && step(a) != step(b);
}

Edit find_edit(const Tokens& in, std::size_t recorded, const Tokens& with, const Tokens& other,
               const Tokens& history, bool told_made_more, Repetition& repetition) {
  if (with.empty()) return {in.size()};
  std::size_t first = 1;
  while (first < in.size() && !may_stand_for(in, recorded, first, with[0])) ++first;
  Edit edit = best_edit(in, recorded, with);
  if (first < in.size()) {
    repetition = repetition_of_edit(slice(in, first), other, history, told_made_more);
    if (repetition) return edit_at(in, with, first);
  }
  // A whole round is likelier than a part of one, where nothing recorded tells them apart.
  for (std::size_t i = first + 1; i < in.size() && edit.to_the_end && with.size() == 1; ++i) {
    if (!may_stand_for(in, recorded, i, with[0])) continue;
    repetition = repetition_of_edit(slice(in, i), other, history, told_made_more);
    if (repetition && repetition.round.size() > 1) return edit_at(in, with, i);
    repetition = {};
    if (i > first + kLongestTried) break;
  }
  if (edit.length != first && edit.length < in.size())
    repetition = repetition_of_edit(slice(in, edit.length), other, history, told_made_more);
  return edit;
}

}  // namespace dshang::job
