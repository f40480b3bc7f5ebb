#include "core/job/origin.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/flight/hash.h"
#include "core/job/lone_line.h"
#include "core/job/story.h"
#include "core/job/visit_sequences.h"

namespace dshang::job {
namespace {

constexpr std::size_t kHistory = 8192;  // calls looked at behind the parting
constexpr Seq kGapWithoutSteps = 64;    // calls between differences of one fault, where no step tells

// ---- sequences from a common start
// ---------------------------------------------------------------------------

// What tells the members' tokens apart: what they do, or only the step in which they do it.
enum class By { kTokens, kSteps };

std::uint64_t key_at(const Tokens& tokens, std::size_t at, By by) {
  if (at >= tokens.size()) return 0;
  if (by == By::kTokens) return tokens[at].key;
  return flight::mix(tokens[at].key, static_cast<std::uint64_t>(tokens[at].call->step));
}

std::vector<Camp> camps_at(const Sequences& sequences, std::size_t at, By by = By::kTokens) {
  std::vector<Camp> camps;
  for (std::size_t m = 0; m < sequences.of.size(); ++m) {
    std::uint64_t key = key_at(sequences.of[m], at, by);
    auto camp = std::find_if(camps.begin(), camps.end(), [&](const Camp& c) { return c.key == key; });
    if (camp == camps.end()) {
      camps.push_back({key, {m}});
    } else {
      camp->members.push_back(m);
    }
  }
  return camps;
}

bool part_at(const std::vector<Camp>& camps) {
  return std::count_if(camps.begin(), camps.end(), [](const Camp& c) { return c.key != 0; }) > 1;
}

Tokens before(const Sequences& sequences, std::size_t member, std::size_t at) {
  Tokens past = sequences.history[member];
  past.insert(past.end(), sequences.of[member].begin(),
              sequences.of[member].begin() + static_cast<std::ptrdiff_t>(at));
  return past;
}

Tokens after(const Sequences& sequences, std::size_t member, std::size_t at) {
  const Tokens& all = sequences.of[member];
  return at >= all.size() ? Tokens{} : Tokens(all.begin() + static_cast<std::ptrdiff_t>(at), all.end());
}

// Whether what follows stood behind the same token before.
bool goes_on_as_once(const Tokens& tokens, const Tokens& history) {
  if (tokens.empty()) return false;
  Context context = find_context(history);
  return context.length > 0 && history[context.end].key == tokens[0].key;
}

// Of the camp's calls at the parting; kNoStep where it is not known.
std::int64_t step_of(const Sequences& sequences, const Camp& camp, std::size_t at) {
  const Tokens& tokens = sequences.of[camp.members.front()];
  return at < tokens.size() && tokens[at].call ? tokens[at].call->step : kNoStep;
}

// Fills suspects, story and its two tellers from the camps at the parting.
void judge(const CommView& comm, const Sequences& sequences, std::size_t at, const std::vector<Camp>& camps,
           Parting& parting) {
  std::vector<bool> follows;
  for (const Camp& camp : camps) {
    std::size_t m = camp.members.front();
    follows.push_back(camp.key != 0 && follows_history(after(sequences, m, at), before(sequences, m, at)));
  }
  std::vector<std::size_t> gone = departing(camps, follows);
  auto is_gone = [&](std::size_t c) { return std::find(gone.begin(), gone.end(), c) != gone.end(); };
  std::size_t told = camps.size(), other = camps.size();
  for (std::size_t c = 0; c < camps.size(); ++c) {
    if (is_gone(c)) {
      for (std::size_t m : camps[c].members) parting.suspects.push_back(comm.members[m].rank);
    }
    if (camps[c].key == 0) continue;
    if (is_gone(c) && told == camps.size()) told = c;
    if (!is_gone(c) && other == camps.size()) other = c;
  }
  // A tie: tell one side by the other; of the one that does not go on as it once did, if there is one.
  if (gone.empty()) {
    auto went_on = [&](std::size_t c) {
      std::size_t m = camps[c].members.front();
      return goes_on_as_once(after(sequences, m, at), before(sequences, m, at));
    };
    for (std::size_t c = 0; c < camps.size(); ++c) {
      if (camps[c].key != 0 && c != other && told == camps.size()) told = c;
    }
    bool both = told < camps.size() && other < camps.size();
    if (both && went_on(told) != went_on(other)) {
      if (went_on(told)) std::swap(told, other);
    } else if (both && step_of(sequences, camps[told], at) < step_of(sequences, camps[other], at)) {
      std::swap(told, other);  // whoever is in a later step has left something out
    }
  }
  if (told == camps.size() || other == camps.size()) return;
  std::sort(parting.suspects.begin(), parting.suspects.end());
  std::size_t voters = 0, kept = 0;
  for (std::size_t c = 0; c < camps.size(); ++c) {
    if (camps[c].key == 0) continue;
    voters += camps[c].members.size();
    if (!is_gone(c)) kept = std::max(kept, camps[c].members.size());
  }
  parting.by_own_history = !gone.empty() && 2 * kept <= voters;
  std::size_t s = camps[told].members.front(), o = camps[other].members.front();
  parting.told_of = comm.members[s].rank;
  parting.witness = comm.members[o].rank;
  parting.story = tell_story(after(sequences, s, at), after(sequences, o, at), before(sequences, o, at));
}

// ---- visits
// ----------------------------------------------------------------------------------------------------

// What followed a gap in the suspect's forward pass, up to the next step.  What it did in later steps, where
// hosts run ahead, says nothing of the gap.
void look_behind_gap(const Names& names, const Tokens& rest, Story& story) {
  bool forward_visited = false, left_forward = false;
  for (const Token& token : rest) {
    const std::string& phase = names.text(token.phase);
    if (token.kind == Token::Kind::kStep) {
      left_forward = true;
      break;
    }
    if (token.kind == Token::Kind::kLoopEnd) story.loop_ended = true;
    if (token.kind == Token::Kind::kTeardown) story.teardown = true;
    if (left_forward) continue;
    if (token.kind == Token::Kind::kModule && is_forward_phase(phase)) forward_visited = true;
    if (is_backward_phase(phase) || token.kind == Token::Kind::kTeardown) left_forward = true;
  }
  story.no_forward_follows = left_forward && !forward_visited;
}

// The last finished step of a member before the shared one.
Tokens step_before(const Tokens& history) {
  for (std::size_t i = history.size(); i-- > 0;) {
    if (history[i].kind == Token::Kind::kStep)
      return Tokens(history.begin() + static_cast<std::ptrdiff_t>(i), history.end());
  }
  return {};
}

// Whether the members that part here parted in the step before in the same way: they have different roles
// (the stages of a pipeline), and that is how they work.
bool have_roles(const Sequences& sequences, const std::vector<Camp>& camps) {
  for (const Camp& a : camps) {
    for (const Camp& b : camps) {
      if (!a.key || !b.key || a.key == b.key) continue;
      Tokens mine = step_before(sequences.history[a.members.front()]),
             theirs = step_before(sequences.history[b.members.front()]);
      std::size_t n = 0;
      while (n < mine.size() && n < theirs.size() && mine[n].key == theirs[n].key) ++n;
      if (n < mine.size() && n < theirs.size() && mine[n].key == a.key && theirs[n].key == b.key) return true;
    }
  }
  return false;
}

bool part_in_visits(const JobView& view, const CommView& comm, const Visible& visible, Parting& parting) {
  std::optional<Sequences> sequences = visit_sequences(view, comm);
  if (!sequences) return false;
  std::size_t longest = 0;
  for (const Tokens& tokens : sequences->of) longest = std::max(longest, tokens.size());
  for (std::size_t at = 0; at < longest; ++at) {
    if (!part_at(camps_at(*sequences, at))) continue;
    if (have_roles(*sequences, camps_at(*sequences, at))) return false;
    std::optional<Seq> origin;
    for (std::size_t m = 0; m < comm.members.size(); ++m) {
      if (at >= sequences->of[m].size()) continue;
      auto k = first_call_after(comm.members[m], sequences->of[m][at].visit_number);
      if (k && (!origin || *k < *origin)) origin = k;
    }
    // Visits that part behind the visible call are its consequence, or another story.
    if (origin && *origin > visible.call) return false;
    parting.origin = origin.value_or(visible.call);
    judge(comm, *sequences, at, camps_at(*sequences, at), parting);
    for (std::size_t m = 0; m < comm.members.size(); ++m) {
      if (comm.members[m].rank == parting.told_of)
        look_behind_gap(view.names(), after(*sequences, m, at), parting.story);
    }
    parting.story.not_compared = std::move(sequences->not_compared);
    return true;
  }
  return false;
}

// ---- calls
// -----------------------------------------------------------------------------------------------------

// Positions at which purposes differ though the arguments agree, and which call sites stand for each other.
struct PurposeScan {
  std::vector<Seq> differences;
  std::set<Seq> lines_only;  // those of them that only call sites show
  PlaceClasses places;
  bool any_place = false;
};

PurposeScan scan_purposes(const JobView& view, const CommView& comm, Seq visible) {
  PurposeScan scan;
  const Names& names = view.names();
  std::set<std::pair<PlaceId, PlaceId>> seen;
  Seq from = 0;
  for (const Member& member : comm.members) from = std::max(from, member.first);
  for (Seq k = std::max<Seq>(from, 1); k < visible; ++k) {
    bool differs = false;
    std::vector<std::pair<PlaceId, PlaceId>> fresh;
    const Member* reference = nullptr;
    for (const Member& member : comm.members) {
      if (!member.has(k)) continue;
      if (!reference) {
        reference = &member;
        continue;
      }
      const Call &a = reference->call(k), &b = member.call(k);
      if (known_parts_differ(a, b)) differs = true;
      PlaceId pa = a.site ? names.place_of(a.site) : 0, pb = b.site ? names.place_of(b.site) : 0;
      if (pa && pb) scan.any_place = true;
      if (pa && pb && pa != pb && !seen.count({pa, pb})) fresh.emplace_back(pa, pb);
    }
    // A pair of lines is new once; what it meant is known when the next difference, or none, has followed.
    if (!fresh.empty() && !differs) scan.lines_only.insert(k);
    differs = differs || !fresh.empty();
    for (auto pair : fresh) seen.insert(pair), seen.insert({pair.second, pair.first});
    if (differs) scan.differences.push_back(k);
  }
  return scan;
}

// The first difference of the run of differences that reaches up to the visible call.
std::optional<Seq> start_of_last_run(const std::vector<Seq>& differences, Seq visible, Seq gap) {
  std::optional<Seq> start;
  Seq next = visible;
  for (auto at = differences.rbegin(); at != differences.rend(); ++at) {
    if (next - *at > gap) break;
    start = next = *at;
  }
  return start;
}

Seq length_of_round(const CommView& comm, Seq visible) {
  // Calls of the step before the newest one that began, on any member that announces steps.
  for (const Member& member : comm.members) {
    Seq k = std::min(visible - 1, member.last());
    if (k < member.first || member.call(k).step == kNoStep) continue;
    std::int64_t step = member.call(k).step;
    Seq end = k;
    while (end > member.first && member.call(end).step == step) --end;
    if (member.call(end).step == step) continue;
    Seq begin = end;
    while (begin > member.first && member.call(begin).step == member.call(end).step) --begin;
    return std::max<Seq>(end - begin, 2);
  }
  return kGapWithoutSteps;
}

void join_healthy_places(const JobView& view, const CommView& comm, Seq until, PlaceClasses& places) {
  for (const Member& member : comm.members) {
    const Member& reference = comm.members.front();
    for (Seq k = std::max(member.first, reference.first);
         k < std::min({until, member.last() + 1, reference.last() + 1}); ++k) {
      const Call &a = reference.call(k), &b = member.call(k);
      if (a.site && b.site) places.join(view.names().place_of(a.site), view.names().place_of(b.site));
    }
  }
}

// The camps where all were in one step, and some begin the next with the call that others still make in it;
// empty where the first calls differ in more than that.
std::vector<Camp> parted_steps(const Sequences& sequences) {
  std::set<std::int64_t> before;
  for (std::size_t m = 0; m < sequences.of.size(); ++m) {
    if (sequences.of[m].empty() || sequences.history[m].empty()) return {};
    before.insert(sequences.history[m].back().call->step);
  }
  std::vector<Camp> camps = camps_at(sequences, 0, By::kSteps);
  bool one_step = before.size() == 1 && *before.begin() != kNoStep;
  return one_step && part_at(camps) && !part_at(camps_at(sequences, 0)) ? camps : std::vector<Camp>{};
}

void part_in_calls(const JobView& view, const CommView& comm, const Visible& visible, Parting& parting) {
  PurposeScan scan = scan_purposes(view, comm, visible.call);
  parting.origin = start_of_last_run(scan.differences, visible.call, length_of_round(comm, visible.call));
  for (Seq k : scan.differences) {
    if (!parting.origin || k < *parting.origin) continue;
    parting.origin = k;
    join_healthy_places(view, comm, k, scan.places);
    if (!scan.lines_only.count(k) || !is_lone_line(view, comm, k, visible.call, scan.places)) break;
    parting.origin.reset();
    auto next = std::upper_bound(scan.differences.begin(), scan.differences.end(), k);
    if (next != scan.differences.end()) parting.origin = *next;
  }
  Seq at = parting.origin.value_or(visible.call);
  join_healthy_places(view, comm, at, scan.places);
  Sequences sequences;
  Seq oldest = at > kHistory ? at - kHistory : 1;
  for (const Member& member : comm.members) {
    sequences.history.push_back(call_tokens(view, member, oldest, at - 1, scan.places));
    sequences.of.push_back(call_tokens(view, member, at, member.last(), scan.places));
  }
  // Steps may part where the calls are still alike.
  std::vector<Camp> by_steps = parted_steps(sequences);
  if (!by_steps.empty()) judge(comm, sequences, 0, by_steps, parting);
  for (std::size_t n = 0; n <= visible.call - at && by_steps.empty(); ++n) {
    std::vector<Camp> camps = camps_at(sequences, n);
    if (!part_at(camps)) continue;
    judge(comm, sequences, n, camps, parting);
    break;
  }
  parting.story.places_known = scan.any_place;
}

}  // namespace

std::vector<std::size_t> departing(const std::vector<Camp>& camps, const std::vector<bool>& follows) {
  std::size_t voters = 0;
  for (const Camp& camp : camps) {
    if (camp.key != 0) voters += camp.members.size();
  }
  std::vector<std::size_t> gone;
  for (std::size_t c = 0; c < camps.size(); ++c) {
    if (2 * camps[c].members.size() <= voters || camps[c].key == 0) continue;
    for (std::size_t other = 0; other < camps.size(); ++other) {
      if (other != c && camps[other].key != 0) gone.push_back(other);
    }
    return gone;
  }
  bool one_follows = std::count(follows.begin(), follows.end(), true) == 1;
  if (!one_follows) return {};
  for (std::size_t c = 0; c < camps.size(); ++c) {
    if (camps[c].key != 0 && !follows[c]) gone.push_back(c);
  }
  return gone;
}

Parting find_parting(const JobView& view, const CommView& comm, const Visible& visible) {
  Parting parting;
  for (const Member& member : comm.members) {
    parting.purposes_known = parting.purposes_known || view.knows_purposes(view.ranks[member.process]);
  }
  if (part_in_visits(view, comm, visible, parting)) return parting;
  part_in_calls(view, comm, visible, parting);
  return parting;
}

}  // namespace dshang::job
