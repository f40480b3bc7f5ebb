#include "core/job/token.h"

#include <algorithm>
#include <string_view>

#include "core/flight/hash.h"

namespace dshang::job {
namespace {

using flight::VisitKind;

bool contains_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != text.npos; });
}

std::uint64_t key_of(Token::Kind kind, std::uint64_t a, std::uint64_t b) {
  return flight::mix(flight::mix(flight::mix(flight::kFnvOffset, 1 + static_cast<std::uint64_t>(kind)), a),
                     b);
}

// As the functions on the way are named, innermost first; kUnknown where none says it.  Names that hold
// both words (forward_backward_func) say nothing.  A forward that is run again on the way of a backward pass
// (activation checkpointing) belongs to that.
Part part_of_frames(const Names& names, const Site& site) {
  Part part = Part::kUnknown;
  for (const FrameName& frame : site.frames) {
    const std::string& function = names.text(frame.function);
    bool forward = is_forward_phase(function);
    bool backward =
        contains_any(function, {"backward", "recompute", "ipg_grads", "reduce_partition", "unpack_hook"});
    if (forward == backward) continue;
    if (backward) return Part::kBackward;
    part = Part::kForward;
  }
  return part;
}

bool make_token(const RankView& rank, const Names& names, std::uint64_t n, Token& token) {
  const Visit& visit = rank.records().visits.at(n);
  if (visit.torn) return false;
  token.visit = &visit;
  token.visit_number = n;
  token.phase = visit.phase;
  token.module = visit.module;
  token.place = visit.site ? names.place_of(visit.site) : 0;
  token.part = part_of_phase(names.text(visit.phase));
  switch (visit.kind) {
    case VisitKind::kStep:
      token.kind = Token::Kind::kStep;
      break;
    case VisitKind::kPhasePush:
      token.kind = Token::Kind::kPhase;
      break;
    case VisitKind::kModuleEnter:
      token.kind = Token::Kind::kModule;
      break;
    case VisitKind::kLoopEnd:
      token.kind = Token::Kind::kLoopEnd;
      break;
    case VisitKind::kTeardown:
      token.kind = Token::Kind::kTeardown;
      break;
    default:
      return false;
  }
  bool is_step = token.kind == Token::Kind::kStep;
  token.key = key_of(token.kind, is_step ? 0 : token.phase, is_step ? 0 : token.module);
  if (is_evaluated(token)) token.key = flight::mix(token.key, 1);
  return true;
}

// The number of the visit that pops the phase pushed at `push`, or the end.
std::uint64_t matching_pop(const Window<Visit>& visits, std::uint64_t push) {
  int depth = 0;
  for (std::uint64_t n = push + 1; n < visits.end(); ++n) {
    const Visit& visit = visits.at(n);
    if (visit.thread != visits.at(push).thread) continue;
    if (visit.kind == VisitKind::kPhasePush) ++depth;
    if (visit.kind == VisitKind::kPhasePop && depth-- == 0) return n;
  }
  return visits.end();
}

// Nothing stands in it, and it says nothing by itself, as a backward pass does that reduces nothing (no_sync).
bool is_empty_phase(const RankView& rank, std::uint64_t push) {
  Part part = part_of_phase(rank.names->text(rank.records().visits.at(push).phase));
  if (part == Part::kBackward) return false;
  const auto& visits = rank.records().visits;
  std::uint64_t pop = matching_pop(visits, push);
  std::uint64_t calls_at_pop = pop < visits.end() ? visits.at(pop).calls_before : rank.records().calls.end();
  if (calls_at_pop > visits.at(push).calls_before) return false;
  for (std::uint64_t n = push + 1; n < pop; ++n) {
    if (visits.at(n).kind == VisitKind::kModuleEnter) return false;
  }
  return true;
}

constexpr std::size_t kLongestContext = 256;

std::size_t common_suffix(const Tokens& tokens, std::size_t a, std::size_t b) {
  std::size_t length = 0;
  while (length < kLongestContext && a > 0 && b > 0 && tokens[a - 1].key == tokens[b - 1].key) {
    ++length, --a, --b;
  }
  return length;
}

}  // namespace

PlaceId PlaceClasses::find(PlaceId place) const {
  for (auto at = parent_.find(place); at != parent_.end() && at->second != place; at = parent_.find(place)) {
    place = at->second;
  }
  return place;
}

void PlaceClasses::join(PlaceId a, PlaceId b) {
  a = find(a), b = find(b);
  if (a != b) parent_[std::max(a, b)] = std::min(a, b);
}

Tokens visit_tokens(const RankView& rank, std::uint64_t from) {
  Tokens tokens;
  const auto& visits = rank.records().visits;
  for (std::uint64_t n = std::max(from, visits.first()); n < visits.end(); ++n) {
    Token token;
    if (!make_token(rank, *rank.names, n, token)) continue;
    if (token.kind == Token::Kind::kPhase && is_empty_phase(rank, n)) continue;
    tokens.push_back(token);
  }
  return tokens;
}

Tokens call_tokens(const JobView& view, const Member& member, Seq from, Seq to, const PlaceClasses& places) {
  Tokens tokens;
  const RankView& rank = view.ranks[member.process];
  std::unordered_map<SiteId, Part> parts;  // of sites
  for (Seq k = std::max(from, member.first); k <= std::min(to, member.last()); ++k) {
    const Call& call = member.call(k);
    Token token;
    token.call = &call;
    token.phase = call.phase;
    token.module = call.module;
    token.place = call.site ? view.names().place_of(call.site) : 0;
    token.reduces = view.op_traits(rank, call) & flight::kOpReduces;
    token.part = part_of_phase(view.names().text(call.phase));
    if (!call.phase && call.site) {
      auto [at, is_new] = parts.try_emplace(call.site, Part::kUnknown);
      if (is_new) at->second = part_of_frames(view.names(), view.names().site(call.site));
      token.part = at->second;
    }
    token.line = places.find(token.place);
    std::uint64_t where = flight::mix(flight::mix(call.phase, call.module), token.line);
    token.key = key_of(Token::Kind::kCall, signature(rank, call), where);
    tokens.push_back(token);
  }
  return tokens;
}

Context find_context(const Tokens& history) {
  Context best;
  for (std::size_t end = history.size(); end-- > 1;) {
    std::size_t length = common_suffix(history, end, history.size());
    if (length > best.length) best = {end, length};
    if (best.length >= kLongestContext) break;
  }
  return best;
}

Tokens predict(const Tokens& history, std::size_t limit) {
  Context context = find_context(history);
  if (context.length == 0) return {};
  Tokens next(history.begin() + static_cast<std::ptrdiff_t>(context.end), history.end());
  // The continuation runs into the present, from where it repeats itself.
  for (std::size_t i = 0; !next.empty() && next.size() < limit; ++i) next.push_back(next[i]);
  if (next.size() > limit) next.resize(limit);
  return next;
}

bool is_evaluated(const Token& token) {
  return token.kind == Token::Kind::kModule && token.part == Part::kForward && token.visit->training == 0;
}

bool is_side_phase(std::string_view phase) {
  return contains_any(phase,
                      {"save", "load", "eval", "valid", "log", "generat", "checkpoint", "metric", "test"});
}

bool is_backward_phase(std::string_view phase) { return contains_any(phase, {"backward", "recompute"}); }
bool is_forward_phase(std::string_view phase) { return contains_any(phase, {"forward"}); }

Part part_of_phase(std::string_view phase) {
  if (is_backward_phase(phase)) return Part::kBackward;
  if (is_forward_phase(phase)) return Part::kForward;
  return is_side_phase(phase) ? Part::kSide : Part::kUnknown;
}

}  // namespace dshang::job
