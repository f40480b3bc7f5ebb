#include "core/job/any_order.h"

#include <algorithm>
#include <map>

#include "core/job/edit.h"

namespace dshang::job {
namespace {

bool same_pass(const Token& a, const Token& b) {
  return a.kind == b.kind && a.part == b.part && a.phase == b.phase && !steps_differ(a, b);
}

// Whether such passes began with different calls.
bool order_changes(const Tokens& history, const Token& of) {
  std::uint64_t first = 0;
  auto inside = [&](const Token& token) {
    return token.kind == of.kind && token.part == of.part && token.phase == of.phase;
  };
  for (std::size_t i = 1; i < history.size(); ++i) {
    if (!inside(history[i]) || inside(history[i - 1])) continue;
    if (first && history[i].key != first) return true;
    first = history[i].key;
  }
  return false;
}

}  // namespace

Repetition repetition_in_any_order(const Tokens& suspect, const Tokens& other, const Tokens& history) {
  if (suspect.empty() || other.empty() || history.empty() || history.back().part == Part::kUnknown) return {};
  const Token& last = history.back();
  bool more = same_pass(suspect[0], last);
  // A forward pass made again where the others begin its backward pass left that out.
  bool in_backward = last.part == Part::kBackward || (more && other[0].part == Part::kBackward);
  if (in_backward || more == same_pass(other[0], last)) return {};
  std::map<std::uint64_t, std::size_t> times;  // by key
  std::size_t n = 0;
  while (n < history.size() && same_pass(history[history.size() - 1 - n], last))
    ++times[history[history.size() - 1 - n++].key];
  std::size_t rounds = n / times.size();
  bool whole = times.size() > 1 &&
               std::all_of(times.begin(), times.end(), [&](const auto& one) { return one.second == rounds; });
  if (!whole || !times.count(more ? suspect[0].key : other[0].key)) return {};
  bool in_order = (more ? suspect[0] : other[0]).key == history[history.size() - times.size()].key;
  if (!in_order && !order_changes(history, last)) return {};
  Repetition found;
  found.round = Tokens(history.end() - static_cast<std::ptrdiff_t>(times.size()), history.end());
  found.told = rounds + more;
  found.others = rounds + !more;
  (more ? found.told_inside : found.others_inside) = true;
  return found;
}

}  // namespace dshang::job
