#include "core/job/visit_sequences.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/flight/hash.h"

namespace dshang::job {
namespace {

constexpr std::uint64_t kHistory = 16384;  // visits looked at
constexpr std::size_t kStepsBack = 64;     // steps tried as the last that all share, and as many before it

// Indices of step tokens by step number, newest occurrence.
using Steps = std::map<std::int64_t, std::size_t>;
using Keys = std::set<std::uint64_t>;

struct Visits {
  const Member* member;
  Tokens tokens;
  Steps steps;
};

Visits visits_of(const JobView& view, const Member& member) {
  const RankView& rank = view.ranks[member.process];
  std::uint64_t end = rank.records().visits.end();
  Visits visits{&member, visit_tokens(rank, end > kHistory ? end - kHistory : 0), {}};
  for (std::size_t i = 0; i < visits.tokens.size(); ++i) {
    const Token& token = visits.tokens[i];
    if (token.kind == Token::Kind::kStep) visits.steps[token.visit->step] = i;
  }
  return visits;
}

std::optional<Seq> first_call_in(const Visits& visits, std::size_t token) {
  return first_call_after(*visits.member, visits.tokens[token].visit_number);
}

// The next call of a member that has made none since is the one behind its last.
Seq next_call_in(const Visits& visits, std::size_t token) {
  return first_call_in(visits, token).value_or(visits.member->last() + 1);
}

// The newest step that all members have begun, with its first call at the same position everywhere.
std::optional<std::int64_t> shared_step(const std::vector<Visits>& all) {
  std::int64_t newest = INT64_MAX;
  for (const Visits& visits : all) {
    if (visits.steps.empty()) return std::nullopt;
    newest = std::min(newest, visits.steps.rbegin()->first);
  }
  std::size_t tries = 0;
  for (auto at = all[0].steps.rbegin(); at != all[0].steps.rend() && tries < kStepsBack; ++at, ++tries) {
    std::int64_t step = at->first;
    if (step > newest) continue;
    std::set<Seq> starts;
    bool begun = true;
    for (const Visits& visits : all) {
      auto found = visits.steps.find(step);
      if (found == visits.steps.end()) {
        begun = false;
        break;
      }
      starts.insert(next_call_in(visits, found->second));
    }
    if (begun && starts.size() == 1) return step;
  }
  return std::nullopt;
}

// ---- what ranks visit each in their own way
// ----------------------------------------------------------------------

// A finished step of one member.
struct Stretch {
  std::int64_t next = 0;  // the step that follows
  std::size_t begin = 0, end = 0;
  Seq first = 0, behind = 0;  // calls
};

std::optional<Stretch> stretch_of(const Visits& visits, std::int64_t step) {
  auto at = visits.steps.find(step);
  if (at == visits.steps.end() || std::next(at) == visits.steps.end()) return std::nullopt;
  Stretch stretch{std::next(at)->first, at->second, std::next(at)->second, 0, 0};
  auto first = first_call_in(visits, stretch.begin), behind = first_call_in(visits, stretch.end);
  if (!first || !behind || stretch.end < stretch.begin) return std::nullopt;
  stretch.first = *first, stretch.behind = *behind;
  return stretch;
}

bool calls_agree(const Visits& a, const Stretch& s, const Visits& b, const Stretch& t) {
  if (s.next != t.next || s.first != t.first || s.behind != t.behind) return false;
  for (Seq k = s.first; k < s.behind; ++k) {
    if (!a.member->has(k) || !b.member->has(k)) return false;
    if (known_parts_differ(a.member->call(k), b.member->call(k))) return false;
  }
  return true;
}

std::vector<const Token*> tokens_of(const Visits& visits, const Stretch& stretch, const Keys& without) {
  std::vector<const Token*> tokens;
  for (std::size_t i = stretch.begin; i < stretch.end; ++i) {
    if (!without.count(visits.tokens[i].key)) tokens.push_back(&visits.tokens[i]);
  }
  return tokens;
}

// Forward and backward passes and steps are what ranks have to make alike.
bool may_be_own(const Token& token) {
  return token.kind == Token::Kind::kModule ||
         (token.kind == Token::Kind::kPhase && token.part == Part::kSide);
}

// Kinds of visits of which the two made another number, or which they made in another order; empty where they
// differ in more than what may be their own.
Keys own_visits(const Visits& a, const Stretch& s, const Visits& b, const Stretch& t) {
  struct Made {
    bool own;
    int more = 0;  // by `a`
  };
  std::map<std::uint64_t, Made> kinds;
  auto made = [&](const Token* token) -> Made& {
    return kinds.try_emplace(token->key, Made{may_be_own(*token)}).first->second;
  };
  for (const Token* token : tokens_of(a, s, {})) ++made(token).more;
  for (const Token* token : tokens_of(b, t, {})) --made(token).more;
  Keys own;
  for (const auto& [key, kind] : kinds) {
    if (kind.more == 0) continue;
    if (!kind.own) return {};
    own.insert(key);
  }
  for (;;) {
    auto mine = tokens_of(a, s, own), theirs = tokens_of(b, t, own);  // of one length by now
    auto at = std::mismatch(mine.begin(), mine.end(), theirs.begin(),
                            [](const Token* x, const Token* y) { return x->key == y->key; });
    if (at.first == mine.end()) return own;
    if (!may_be_own(**at.first) || !may_be_own(**at.second)) return {};
    own.insert((*at.first)->key);
    own.insert((*at.second)->key);
  }
}

std::uint64_t hash_of(const Visits& visits, const Stretch& stretch) {
  std::uint64_t hash = flight::kFnvOffset;
  for (std::size_t i = stretch.begin; i < stretch.end; ++i) hash = flight::mix(hash, visits.tokens[i].key);
  return hash;
}

Keys own_visits_before(const std::vector<Visits>& all, std::int64_t shared) {
  Keys own;
  std::size_t looked_at = 0;
  const Visits& reference = all.front();
  for (auto at = reference.steps.lower_bound(shared); at != reference.steps.begin() && looked_at < kStepsBack;
       ++looked_at) {
    --at;
    std::optional<Stretch> stretch = stretch_of(reference, at->first);
    if (!stretch) continue;
    const std::uint64_t hash = hash_of(reference, *stretch);
    for (std::size_t m = 1; m < all.size(); ++m) {
      std::optional<Stretch> other = stretch_of(all[m], at->first);
      if (!other || hash_of(all[m], *other) == hash) continue;
      if (!calls_agree(reference, *stretch, all[m], *other)) continue;
      own.merge(own_visits(reference, *stretch, all[m], *other));
    }
  }
  return own;
}

// Moves what is to be compared of [begin, end) to `to`; keeps the newest of each kind that is not.
void take(Tokens::iterator begin, Tokens::iterator end, const Keys& own, Tokens& to, Tokens& not_compared) {
  for (auto at = begin; at != end; ++at) {
    if (!own.count(at->key)) {
      to.push_back(*at);
      continue;
    }
    bool known = std::any_of(not_compared.begin(), not_compared.end(),
                             [&](const Token& token) { return token.key == at->key; });
    if (!known) not_compared.push_back(*at);
  }
}

}  // namespace

std::optional<Seq> first_call_after(const Member& member, std::uint64_t visit_number) {
  auto at = std::upper_bound(member.calls.begin(), member.calls.end(), visit_number,
                             [](std::uint64_t n, const Call* call) { return n < call->visits_before; });
  if (at == member.calls.end()) return std::nullopt;
  return member.first + static_cast<Seq>(at - member.calls.begin());
}

bool known_parts_differ(const Call& a, const Call& b) {
  auto differ = [](auto x, auto y, auto unknown) { return x != unknown && y != unknown && x != y; };
  return differ(a.step, b.step, kNoStep) || differ(a.phase, b.phase, NameId{0}) ||
         differ(a.module, b.module, NameId{0});
}

std::optional<Sequences> visit_sequences(const JobView& view, const CommView& comm) {
  std::vector<Visits> all;
  for (const Member& member : comm.members) all.push_back(visits_of(view, member));
  std::optional<std::int64_t> step = shared_step(all);
  if (!step) return std::nullopt;
  const Keys own = own_visits_before(all, *step);
  Sequences sequences;
  for (Visits& visits : all) {
    auto split = visits.tokens.begin() + static_cast<std::ptrdiff_t>(visits.steps.at(*step));
    take(visits.tokens.begin(), split, own, sequences.history.emplace_back(), sequences.not_compared);
    take(split, visits.tokens.end(), own, sequences.of.emplace_back(), sequences.not_compared);
  }
  return sequences;
}

}  // namespace dshang::job
