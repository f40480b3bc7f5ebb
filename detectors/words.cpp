#include "detectors/words.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "core/job/site_policy.h"
#include "detectors/raised.h"

namespace dshang::detect {
namespace {

using job::Story;
using job::Token;

template <typename... Args>
std::string format(const char* pattern, Args... args) {
  char text[256];
  std::snprintf(text, sizeof text, pattern, args...);
  return text;
}

std::string side_text(const job::Side& side) {
  std::string text = job::ranks_text(side.ranks) + ": " + call_text(side);
  if (side.step) text += ", step " + std::to_string(*side.step);
  if (side.phase) text += ", " + *side.phase;
  if (side.module) text += ", module " + *side.module;
  if (side.site) text += ", at " + *side.site;
  return text;
}

std::string token_text(const JobView& view, const Token& token) {
  const job::Names& names = view.names();
  switch (token.kind) {
    case Token::Kind::kStep:
      return "the next step" +
             (token.visit->step == job::kNoStep ? "" : " (step " + std::to_string(token.visit->step) + ")");
    case Token::Kind::kPhase:
      return names.text(token.phase);
    case Token::Kind::kModule:
      return "module " + names.text(token.module) + (token.phase ? " in " + names.text(token.phase) : "");
    case Token::Kind::kLoopEnd:
      return "the end of its data";
    case Token::Kind::kTeardown:
      return "its teardown";
    case Token::Kind::kCall:
      break;
  }
  std::string text = token.phase ? "a call in " + names.text(token.phase) : std::string("a call");
  return token.module ? text + " of module " + names.text(token.module) : text;
}

}  // namespace

std::string call_text(const job::Side& side) {
  std::string text = side.op.value_or("call");
  if (side.count.value_or(0)) text += " of " + std::to_string(*side.count);
  if (side.dtype) text += " " + *side.dtype;
  if (side.reduce_op) text += " " + *side.reduce_op;
  bool to_root = side.op == "reduce" || side.op == "gather";
  if (side.root) text += (to_root ? " to root " : " from root ") + std::to_string(*side.root);
  return text;
}

std::string call_at(const Divergence& d) {
  return "call " + std::to_string(d.visible.call) + " of " + d.comm->name;
}

std::string waiting_at(const Divergence& d) {
  return (d.missing.empty() ? std::string("all wait") : wait_text(d.waiting)) + " in " + call_at(d);
}

std::string modules_text(const JobView& view, const job::Tokens& tokens) {
  std::vector<std::string> names;
  for (const Token& token : tokens) {
    const std::string& name = view.names().text(token.module);
    if (name.empty()) continue;
    bool inside = std::any_of(names.begin(), names.end(), [&](const std::string& outer) {
      return name == outer ||
             (name.size() > outer.size() && name.compare(0, outer.size() + 1, outer + ".") == 0);
    });
    if (!inside) names.push_back(name);
  }
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < 4; ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > 4) text += " and " + std::to_string(names.size() - 4) + " more";
  return text;
}

std::string place_text(const JobView& view, const Token& token) {
  return view.names().place_text(token.place);
}

std::string wait_text(const std::vector<Rank>& ranks) {
  return job::ranks_text(ranks) + (ranks.size() == 1 ? " waits" : " wait");
}

std::string step_text(const Divergence& d) { return d.step ? " in step " + std::to_string(*d.step) : ""; }

std::string bytes_text(std::uint64_t bytes) {
  if (bytes == flight::kUnknownBytes) return "an unknown number of bytes";
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) value /= 1024, ++unit;
  return value == std::floor(value) ? format("%.0f %s", value, kUnits[unit])
                                    : format("%.1f %s", value, kUnits[unit]);
}

std::string seconds_text(double seconds) {
  if (seconds < 10) return format("%.1f s", seconds);
  if (seconds < 600) return format("%.0f s", seconds);
  return format("%.0f min", seconds / 60);
}

std::string threshold_text(const JobView& view) {
  std::string text = "judged by the stall threshold of " + seconds_text(view.stall_after());
  bool widened = view.stall_after() > view.params().stall_after;
  return text + (widened ? " (three times the median step; DSHANG_STALL_AFTER is " +
                               seconds_text(view.params().stall_after) + ")"
                         : std::string(" (DSHANG_STALL_AFTER)"));
}

std::string who(const Divergence& d) {
  if (!d.suspects.empty()) return job::ranks_text(d.suspects);
  return d.told_of >= 0 ? "one side (rank " + std::to_string(d.told_of) + ")" : "one side";
}

std::string others(const Divergence& d) {
  std::vector<Rank> rest;
  for (Rank rank : d.comm->ranks()) {
    if (!std::count(d.suspects.begin(), d.suspects.end(), rank)) rest.push_back(rank);
  }
  return d.suspects.empty() ? "the others" : job::ranks_text(rest);
}

std::string told_text(const Divergence& d) {
  return d.suspects.empty() ? job::ranks_text({d.told_of}) : job::ranks_text(d.suspects);
}

std::string others_text(const Divergence& d) {
  return d.suspects.empty() ? job::ranks_text({d.witness}) : others(d);
}

std::string times_text(std::size_t n) { return std::to_string(n) + (n == 1 ? " time" : " times"); }

std::string ordinal_text(std::size_t n) {
  bool teen = n % 100 >= 11 && n % 100 <= 13;
  const char* ending = teen || n % 10 > 3 || n % 10 == 0 ? "th"
                       : n % 10 == 1                     ? "st"
                       : n % 10 == 2                     ? "nd"
                                                         : "rd";
  return std::to_string(n) + ending;
}

std::string went_on(const JobView& view, const Divergence& d) {
  if (d.story.next.empty() || d.story.kind == Story::Kind::kExchange) return {};
  bool nothing_known = !d.story.expected.empty() && place_text(view, d.story.next[0]).empty() &&
                       place_text(view, d.story.expected[0]).empty() &&
                       token_text(view, d.story.next[0]) == token_text(view, d.story.expected[0]);
  if (nothing_known) return {};
  std::string text = who(d) + " went on with " + token_text(view, d.story.next[0]);
  if (std::string at = place_text(view, d.story.next[0]); !at.empty()) text += " (" + at + ")";
  if (d.story.expected.empty()) return text;
  text += ", the others with " + token_text(view, d.story.expected[0]);
  if (std::string at = place_text(view, d.story.expected[0]); !at.empty()) text += " (" + at + ")";
  return text;
}

ToldSides told_sides(const Divergence& d) {
  constexpr std::size_t kFew = 4, kOfMany = 3;
  ToldSides sides;
  for (const job::Side& side : d.sides) sides.told.push_back(&side);
  if (d.sides.size() <= kFew) return sides;
  auto is_suspected = [&](const job::Side* side) {
    return std::any_of(side->ranks.begin(), side->ranks.end(), [&](Rank rank) {
      return std::find(d.suspects.begin(), d.suspects.end(), rank) != d.suspects.end();
    });
  };
  std::stable_sort(sides.told.begin(), sides.told.end(), [&](const job::Side* a, const job::Side* b) {
    bool first = is_suspected(a), second = is_suspected(b);
    return first != second ? first : a->ranks.size() > b->ranks.size();
  });
  std::vector<Rank> others;
  for (std::size_t i = kOfMany; i < sides.told.size(); ++i)
    others.insert(others.end(), sides.told[i]->ranks.begin(), sides.told[i]->ranks.end());
  std::sort(others.begin(), others.end());
  sides.others = std::to_string(sides.told.size() - kOfMany) + " other ways on " + job::ranks_text(others);
  sides.told.resize(kOfMany);
  return sides;
}

std::vector<std::string> evidence_of(const JobView& view, const Divergence& d) {
  std::vector<std::string> lines;
  const bool arguments = d.visible.kind == job::Visible::Kind::kArguments;
  // Where all have made the call, the headline says it.
  std::string first =
      arguments ? "arguments first differ at " + call_at(d) : wait_text(d.waiting) + " in " + call_at(d);
  if (!d.missing.empty())
    first += "; " + job::ranks_text(d.missing) + (d.missing.size() == 1 ? " has" : " have") +
             " not made it (last call " + std::to_string(d.visible.call - 1) + ")";
  if (!arguments || !d.missing.empty()) lines.push_back(first);
  const ToldSides sides = told_sides(d);
  for (const job::Side* side : sides.told) lines.push_back(side_text(*side));
  if (!sides.others.empty()) lines.push_back(sides.others);
  if (std::string text = went_on(view, d); !text.empty()) lines.push_back(text);
  if (d.by_own_history) {
    lines.push_back("no side is in the majority: " + job::ranks_text(d.suspects) +
                    (d.suspects.size() == 1 ? " departs" : " depart") +
                    " from what it did in its own earlier steps, the others do not");
  }
  if (d.origin && *d.origin < d.visible.call) {
    job::Seq last = d.visible.call - 1;
    bool one = *d.origin == last;
    lines.push_back("the purposes part at call " + std::to_string(*d.origin) + ": " +
                    (one ? "it" : "calls " + std::to_string(*d.origin) + " to " + std::to_string(last)) +
                    " had equal arguments and " + (one ? "was" : "were") +
                    " paired for different purposes; what " + (one ? "it" : "they") + " moved is wrong");
  } else if (d.ambiguous_from) {
    job::Seq last = d.visible.call - 1;
    bool one = d.ambiguous_from == last;
    lines.push_back(
        (one ? "call " + std::to_string(last) + " has"
             : "calls " + std::to_string(d.ambiguous_from) + " to " + std::to_string(last) + " have") +
        " equal arguments, and " +
        (d.origin_proven ? "what is known of their call sites and modules does not tell"
                         : "without call sites or module visits it cannot be told") +
        " whether they were meant for each other, so their data may be wrong");
  }
  if (std::string own = modules_text(view, d.story.not_compared); !own.empty()) {
    lines.push_back("visits of " + own +
                    " are not compared: the ranks make them each in their own way, also in earlier steps whose "
                    "calls agree");
  }
  return lines;
}

Finding finding_of(const JobView& view, const Divergence& d, const char* type, Explanation explanation) {
  if (std::optional<Raised> raised = raised_before(view, d)) tell_raised(view, *raised, explanation);
  Finding finding;
  finding.type = type;
  finding.severity = Severity::kHang;
  finding.certainty =
      d.visible.kind == job::Visible::Kind::kArguments ? Certainty::kProven : Certainty::kJudged;
  finding.class_certainty = explanation.class_certainty;
  finding.summary = std::move(explanation.summary);
  finding.suspects = d.suspects;
  for (Rank rank : d.waiting) {
    if (!std::count(d.suspects.begin(), d.suspects.end(), rank)) finding.waiting.push_back(rank);
  }
  finding.comm = d.comm->name;
  finding.comm_ranks = d.comm->ranks();
  finding.call = d.visible.call;
  finding.origin = d.origin;
  finding.agreed_until = d.agreed_until;
  finding.sides = d.sides;
  finding.step = d.step;
  finding.evidence = evidence_of(view, d);
  finding.evidence.insert(finding.evidence.end(), explanation.evidence.begin(), explanation.evidence.end());
  finding.fix = std::move(explanation.fix);
  finding.at = view.seconds(d.since_ns);
  return finding;
}

std::vector<Rank> alive(const JobView& view, const std::vector<Rank>& ranks) {
  std::vector<Rank> living;
  for (Rank rank : ranks) {
    const job::RankView* r = view.by_rank(rank);
    if (r && r->alive()) living.push_back(rank);
  }
  return living;
}

double lasted(const JobView& view, const job::RankView& rank, std::uint64_t since_ns) {
  std::uint64_t until = rank.alive() ? view.now_ns() : std::min(view.now_ns(), rank.journal().death->time_ns);
  return until > since_ns ? static_cast<double>(until - since_ns) / 1e9 : 0;
}

std::uint64_t last_activity(const JobView&, const job::RankView& rank) {
  const auto& calls = rank.records().calls;
  const auto& visits = rank.records().visits;
  std::uint64_t newest = rank.records().start_ns;
  if (!calls.empty()) {
    const job::Call& last = calls.at(calls.end() - 1);
    newest = std::max({newest, last.enter_ns, last.return_ns, last.done_ns});
  }
  if (!visits.empty()) newest = std::max(newest, visits.at(visits.end() - 1).time_ns);
  return newest;
}

std::uint64_t idle_since(const JobView& view, const job::RankView& rank) {
  if (job::creating_since(rank)) return 0;
  const auto& calls = rank.records().calls;
  for (std::uint64_t n = calls.first(); n < calls.end(); ++n) {
    if (!calls.at(n).torn && job::is_outstanding(calls.at(n))) return 0;
  }
  return last_activity(view, rank);
}

bool between_steps(const Divergence& d) {
  if (d.story.next.empty() || d.story.expected.empty()) return false;
  const job::Call *mine = d.story.next[0].call, *theirs = d.story.expected[0].call;
  if (!mine || !theirs || mine->phase || mine->step == job::kNoStep || theirs->step == job::kNoStep)
    return false;
  return theirs->step > mine->step;
}

bool from_new_lines(const JobView& view, const Divergence& d) {
  const job::RankView* witness = view.by_rank(d.witness);
  if (!witness || d.story.added.empty() || d.story.from_visits) return false;
  const auto& calls = witness->records().calls;
  // Where the others call from a new line too, as at the start of a job, a new line says nothing.
  const job::Call* expected = d.story.expected.empty() ? nullptr : d.story.expected[0].call;
  bool known = false;
  for (std::uint64_t n = calls.first(); n < calls.end() && !known && expected && expected->site; ++n) {
    if (&calls.at(n) == expected) break;
    known =
        calls.at(n).site && view.names().place_of(calls.at(n).site) == view.names().place_of(expected->site);
  }
  if (!known) return false;
  for (const Token& token : d.story.added) {
    if (token.kind != Token::Kind::kCall || !token.place) return false;
    for (std::uint64_t n = calls.first(); n < calls.end(); ++n) {
      if (calls.at(n).site && view.names().place_of(calls.at(n).site) == token.place) return false;
    }
  }
  return true;
}

std::vector<std::string> names_on_the_way(const JobView& view, const job::Tokens& tokens) {
  const job::Names& names = view.names();
  std::set<std::string> found;
  std::set<job::SiteId> seen;
  for (const Token& token : tokens) {
    if (token.phase) found.insert(names.text(token.phase));
    job::SiteId site = token.call ? token.call->site : token.visit ? token.visit->site : 0;
    if (!site || !seen.insert(site).second) continue;
    for (const job::FrameName& frame : names.site(site).frames) {
      job::FrameOwner owner = job::frame_owner(names.text(frame.file));
      bool counts = owner == job::FrameOwner::kUser || owner == job::FrameOwner::kLibrary;
      if (counts) found.insert(names.text(frame.function));
    }
  }
  return {found.begin(), found.end()};
}

bool named_for_side(const JobView& view, const Token& token) {
  if (!token.call || !token.call->site) return false;
  Token bare;
  bare.call = token.call;
  std::vector<std::string> names = names_on_the_way(view, {bare});
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return job::is_side_phase(name); });
}

bool has_modules(const job::Tokens& tokens) {
  return std::any_of(tokens.begin(), tokens.end(), [](const Token& t) { return t.module != 0; });
}

bool in_phase(const JobView& view, const job::Tokens& tokens, bool (*is_phase)(std::string_view)) {
  return std::any_of(tokens.begin(), tokens.end(),
                     [&](const Token& t) { return is_phase(view.names().text(t.phase)); });
}

bool others_save_or_evaluate(const JobView& view, const Divergence& d) {
  auto is_side = [&](const job::Tokens& tokens) {
    return !tokens.empty() && job::is_side_phase(view.names().text(tokens[0].phase));
  };
  bool sides = d.suspects.empty() && d.told_of >= 0 && is_side(d.story.expected) && !is_side(d.story.next);
  if (!sides || d.story.next.empty()) return sides;
  // What the others do in a later step belongs to that.
  const job::Call *mine = d.story.next[0].call, *theirs = d.story.expected[0].call;
  return !mine || !theirs || mine->step == job::kNoStep || theirs->step <= mine->step;
}

}  // namespace dshang::detect
