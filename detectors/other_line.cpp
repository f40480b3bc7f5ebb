#include "detectors/other_line.h"

#include <algorithm>
#include <set>

#include "core/job/token.h"

namespace dshang::detect {
namespace {

using job::PlaceId;
using job::Token;
using job::Tokens;

// The phases that the rank entered before the visit, oldest first.
Tokens phases_before(const job::RankView& rank, std::uint64_t visit_number) {
  Tokens tokens = job::visit_tokens(rank, 0);
  std::erase_if(tokens, [&](const Token& token) {
    return token.kind != Token::Kind::kPhase || token.visit_number >= visit_number;
  });
  return tokens;
}

struct Pair {
  PlaceId told, others;
  std::int64_t step;  // of the others
};

// Places of the phases that both entered, the newest first, as far back as these are the same.
std::vector<Pair> places_back(const Tokens& told, const Tokens& others) {
  std::vector<Pair> pairs;
  std::size_t n = std::min(told.size(), others.size());
  for (std::size_t i = 1; i <= n; ++i) {
    const Token &mine = told[told.size() - i], &theirs = others[others.size() - i];
    if (mine.key != theirs.key) break;
    pairs.push_back({mine.place, theirs.place, theirs.visit->step});
  }
  return pairs;
}

}  // namespace

std::optional<OtherLines> came_through_other_lines(const JobView& view, const Divergence& d) {
  const job::RankView *told = view.by_rank(d.told_of), *witness = view.by_rank(d.witness);
  bool visits = !d.story.next.empty() && d.story.next[0].visit && !d.story.expected.empty() &&
                d.story.expected[0].visit;
  if (!told || !witness || !visits) return std::nullopt;
  std::vector<Pair> pairs = places_back(phases_before(*told, d.story.next[0].visit_number),
                                        phases_before(*witness, d.story.expected[0].visit_number));
  auto differ = [](const Pair& pair) { return pair.told != pair.others; };
  auto same = std::find_if_not(pairs.begin(), pairs.end(), differ);
  if (same == pairs.begin() || same == pairs.end() || std::any_of(same, pairs.end(), differ))
    return std::nullopt;
  std::set<PlaceId> known;
  for (auto pair = same; pair != pairs.end(); ++pair) known.insert(pair->told);
  bool known_on_both = std::all_of(pairs.begin(), same, [&](const Pair& pair) {
    return pair.told && pair.others && known.count(pair.told) && known.count(pair.others);
  });
  if (!known_on_both) return std::nullopt;
  const Pair& first = *std::prev(same);
  bool repeated = std::any_of(same, pairs.end(), [&](const Pair& pair) {
    return pair.others == first.others && pair.step == first.step && pair.step != job::kNoStep;
  });
  if (repeated) return std::nullopt;
  return OtherLines{first.told, first.others};
}

}  // namespace dshang::detect
