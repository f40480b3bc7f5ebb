#include "core/job/stretch.h"

#include <algorithm>
#include <map>

#include "core/job/edit.h"

namespace dshang::job {
namespace {

constexpr std::size_t kLongEnough = 512;  // tokens that agree, to take a round for one

}  // namespace

bool is_boundary(const Token& token) {
  return token.kind != Token::Kind::kModule && token.kind != Token::Kind::kCall;
}

bool begins_step(const Token& token) { return token.kind == Token::Kind::kStep; }

bool is_in_pass(const Token& token) { return token.part == Part::kForward || token.part == Part::kBackward; }

bool is_plain(const Tokens& tokens) {
  return std::all_of(tokens.begin(), tokens.end(),
                     [](const Token& token) { return token.call && !token.module && !is_in_pass(token); });
}

std::size_t permuted(const Tokens& a, const Tokens& b) {
  std::map<std::uint64_t, int> balance;
  std::size_t unequal = 0;
  bool forward = false, backward = false;
  auto add = [&](std::uint64_t key, int by) {
    int& count = balance[key];
    unequal -= count != 0;
    count += by;
    unequal += count != 0;
  };
  for (std::size_t n = 0; n < std::min({a.size(), b.size(), std::size_t{64}}); ++n) {
    if (is_boundary(a[n]) || is_boundary(b[n])) return 0;
    for (Part part : {a[n].part, b[n].part}) {
      forward = forward || part == Part::kForward;
      backward = backward || part == Part::kBackward;
    }
    if (forward && backward) return 0;
    add(a[n].key, 1);
    add(b[n].key, -1);
    if (unequal == 0) return n + 1;
  }
  return 0;
}

Tokens rest_of_step(const Tokens& tokens) {
  std::size_t n = 0;
  while (n < tokens.size() && !begins_step(tokens[n]) && !is_end(tokens[n]) &&
         !(tokens[n].call && steps_differ(tokens[n], tokens[0])))
    ++n;
  return slice(tokens, n);
}

std::size_t period_of(const Tokens& tokens) {
  for (std::size_t p = 1; p <= tokens.size() / 2; ++p) {
    if (agreement(tokens, 0, tokens, p) >= std::min(tokens.size() - p, kLongEnough)) return p;
  }
  return 0;
}

bool reduces_from_lines(const Tokens& tokens) {
  return std::any_of(tokens.begin(), tokens.end(), [](const Token& token) {
    return token.reduces && token.place && token.part == Part::kUnknown;
  });
}

bool is_bulk_of_reductions(const Tokens& cut, const Tokens& history) {
  constexpr std::uint64_t kFewestGradients = 1024;  // elements: less is no model's
  std::uint64_t mine = 0;
  for (const Token& token : cut) {
    bool of_gradients = token.part == Part::kUnknown || token.part == Part::kBackward;
    if (!token.call || !token.reduces || !of_gradients) return false;
    mine += token.call->count;
  }
  auto reduced_since =
      [&](std::uint64_t key) {  // a call with that key, behind which the last one does not count
        std::uint64_t all = 0;
        for (std::size_t i = history.size(); i-- > 0;) {
          all += history[i].reduces ? history[i].call->count : 0;
          if (history[i].key == key && i + 1 < history.size()) break;
        }
        return all;
      };
  if (history.empty() || mine < kFewestGradients) return false;
  return 2 * mine > std::max(reduced_since(cut[0].key), reduced_since(history.back().key));
}

std::ptrdiff_t reductions(const Tokens& tokens, std::size_t count) {
  auto end = tokens.begin() + static_cast<std::ptrdiff_t>(std::min(count, tokens.size()));
  return std::count_if(tokens.begin(), end, [](const Token& token) { return token.reduces; });
}

}  // namespace dshang::job
