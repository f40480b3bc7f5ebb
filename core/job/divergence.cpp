#include "core/job/divergence.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/job/odd_arguments.h"
#include "core/job/origin.h"
#include "core/job/story.h"

namespace dshang::job {
namespace {

std::string place_or_module_site(const JobView& view, const RankView& rank, const Call& call, bool user) {
  const Names& names = view.names();
  const Site* site = call.site ? &names.site(call.site) : nullptr;
  PlaceId place = site ? (user ? site->user_place : site->place) : 0;
  if (place) return names.place_text(place);
  if (!call.module) return {};
  // The autograd thread has no user frame: the module's last forward visit stands for it.
  const auto& visits = rank.records().visits;
  for (std::uint64_t n = std::min(call.visits_before, visits.end()); n-- > visits.first();) {
    const Visit& visit = visits.at(n);
    if (visit.torn || visit.module != call.module || !visit.site) continue;
    const Site& entered = names.site(visit.site);
    PlaceId at = user ? entered.user_place : entered.place;
    if (at) return "forward of " + names.place_text(at);
  }
  return {};
}

bool same_side(const Side& a, const Side& b) {
  return a.op == b.op && a.dtype == b.dtype && a.reduce_op == b.reduce_op && a.phase == b.phase &&
         a.module == b.module && a.site == b.site && a.user_site == b.user_site && a.count == b.count &&
         a.root == b.root && a.peer == b.peer && a.step == b.step;
}

std::vector<Side> sides_at(const JobView& view, const CommView& comm, Seq k) {
  std::vector<Side> sides;
  for (const Member& member : comm.members) {
    if (!member.has(k)) continue;
    Side side = side_of(view, member, member.call(k));
    auto at = std::find_if(sides.begin(), sides.end(), [&](const Side& s) { return same_side(s, side); });
    if (at == sides.end()) {
      side.ranks = {member.rank};
      sides.push_back(std::move(side));
    } else {
      at->ranks.push_back(member.rank);
    }
  }
  return sides;
}

std::uint64_t existed_since(const CommView& comm, const Visible& visible) {
  std::vector<std::uint64_t> entered;
  for (const Member& member : comm.members) {
    if (member.has(visible.call)) entered.push_back(member.call(visible.call).enter_ns);
  }
  if (entered.empty()) return 0;
  std::sort(entered.begin(), entered.end());
  bool arguments = visible.kind == Visible::Kind::kArguments;
  return arguments && entered.size() > 1 ? entered.back() : entered.front();
}

// What a rank makes more belongs to the step in which it makes it, which others may have left already.
std::optional<std::int64_t> step_of_added(const Story& story) {
  bool more = story.kind == Story::Kind::kInsertion && (story.resumed || story.repetition);
  if (!more || story.added.empty()) return std::nullopt;
  const Token& first = story.added[0];
  std::int64_t step = first.call ? first.call->step : first.visit->step;
  return step == kNoStep ? std::nullopt : std::optional(step);
}

std::optional<std::int64_t> step_at(const JobView& view, const Divergence& d) {
  if (auto step = step_of_added(d.story)) return step;
  Seq k = d.origin.value_or(d.visible.call);
  for (bool only_others : {true, false}) {
    for (const Member& member : d.comm->members) {
      bool suspect = std::count(d.suspects.begin(), d.suspects.end(), member.rank) > 0;
      if (only_others && suspect) continue;
      for (Seq at : {k, d.visible.call}) {
        if (member.has(at) && member.call(at).step != kNoStep) return member.call(at).step;
      }
      if (!only_others && view.ranks[member.process].records().step != kNoStep) {
        return view.ranks[member.process].records().step;
      }
    }
  }
  return std::nullopt;
}

// Whether what is known of the two calls of a member, behind each other with equal arguments, tells them
// apart: a call that one side left out or added between them would show.
bool told_apart(const JobView& view, const Call& before, const Call& here) {
  if (before.step != kNoStep && here.step != kNoStep && before.step != here.step) return true;
  if (before.module && here.module) return before.module != here.module;
  PlaceId was = before.site ? view.names().place_of(before.site) : 0,
          is = here.site ? view.names().place_of(here.site) : 0;
  return was && is && was != is;
}

// The run of equal arguments that ends at the visible call cannot be told apart, but for what is known of its
// calls.
void judge_by_arguments(const JobView& view, Divergence& d) {
  Seq agreed = d.visible.call - 1;
  for (const Member& member : d.comm->members) {
    if (!member.has(d.visible.call)) continue;
    const RankView& rank = view.ranks[member.process];
    std::uint64_t here = signature(rank, member.call(d.visible.call));
    Seq k = d.visible.call;
    while (k > member.first && signature(rank, member.call(k - 1)) == here &&
           !told_apart(view, member.call(k - 1), member.call(k)))
      --k;
    agreed = std::min(agreed, k - 1);
  }
  d.agreed_until = agreed;
  d.ambiguous_from = agreed + 1 < d.visible.call ? agreed + 1 : 0;
}

void finish_positions(const JobView& view, const Parting& parting, Divergence& d) {
  if (parting.origin) {
    d.origin = std::min(*parting.origin, d.visible.call);
    d.agreed_until = *d.origin - 1;
    d.origin_proven = true;
    return;
  }
  if (parting.purposes_known && d.visible.kind == Visible::Kind::kMissing) {
    d.agreed_until = d.visible.call - 1;  // a rank that is late has left nothing out as far as is known
    return;
  }
  if (parting.purposes_known) d.origin = d.visible.call, d.origin_proven = true;
  judge_by_arguments(view, d);
}

}  // namespace

Side side_of(const JobView& view, const Member& member, const Call& call) {
  const RankView& rank = view.ranks[member.process];
  const CommView* comm = nullptr;
  for (const CommView& candidate : view.comms) {
    if (candidate.id == rank.records().comms[member.comm_index].id) comm = &candidate;
  }
  std::uint32_t traits = view.op_traits(rank, call);
  Side side;
  side.op = view.op_name(rank, call);
  side.count = call.count;
  if (const char* text = text_of(call.dtype)) side.dtype = text;
  if (traits & flight::kOpReduces) {
    if (const char* text = text_of(call.reduce_op)) side.reduce_op = text;
  }
  if (call.root_or_peer >= 0) {
    std::int64_t global = call.root_or_peer;
    for (const Member& other : comm->members) {
      if (other.position == call.root_or_peer) global = other.rank;
    }
    if (traits & flight::kOpRooted) side.root = global;
    if (traits & (flight::kOpSend | flight::kOpRecv)) side.peer = global;
  }
  if (call.step != kNoStep) side.step = call.step;
  if (call.phase) side.phase = view.names().text(call.phase);
  if (call.module) side.module = view.names().text(call.module);
  if (std::string text = place_or_module_site(view, rank, call, false); !text.empty()) side.site = text;
  if (std::string text = place_or_module_site(view, rank, call, true); !text.empty()) side.user_site = text;
  return side;
}

std::optional<Divergence> find_divergence(const JobView& view, const CommView& comm) {
  std::optional<Visible> visible = find_visible(view, comm);
  if (!visible) return std::nullopt;
  Divergence d;
  d.comm = &comm;
  d.visible = *visible;
  d.since_ns = existed_since(comm, *visible);
  d.waiting = waiting_from(view, comm, visible->call);
  for (const Member& member : comm.members) {
    if (member.last() < visible->call) d.missing.push_back(member.rank);
  }
  Parting parting = find_parting(view, comm, *visible);
  if (visible->kind == Visible::Kind::kArguments && parting.suspects.empty()) {
    parting.suspects = with_new_arguments(view, comm, visible->call);
    parting.by_own_history = !parting.suspects.empty();
  }
  d.suspects = parting.suspects;
  d.by_own_history = parting.by_own_history;
  d.witness = parting.witness;
  d.told_of = parting.told_of;
  d.story = std::move(parting.story);
  finish_positions(view, parting, d);
  d.sides = sides_at(view, comm, visible->call);
  d.step = step_at(view, d);
  return d;
}

}  // namespace dshang::job
