#include "core/job/classes.h"

#include <algorithm>
#include <unordered_map>

#include "core/flight/hash.h"

namespace dshang::job {
namespace {

const Call* last_call(const RankRecords& records) {
  for (std::uint64_t n = records.calls.end(); n-- > records.calls.first();) {
    if (!records.calls.at(n).torn) return &records.calls.at(n);
  }
  return nullptr;
}

const Call* oldest_awaited(const RankView& rank) {
  const auto& calls = rank.records().calls;
  for (std::uint64_t n = calls.first(); n < calls.end(); ++n) {
    if (!calls.at(n).torn && waits_in(rank, calls.at(n))) return &calls.at(n);
  }
  return nullptr;
}

// Phase and module that the rank is in by its visits.
void place_by_visits(const RankRecords& records, RankState& state) {
  for (std::uint64_t n = records.visits.end(); n-- > records.visits.first();) {
    const Visit& visit = records.visits.at(n);
    if (visit.torn) continue;
    bool left_phase = visit.kind == flight::VisitKind::kPhasePop;
    bool inside_module = visit.kind == flight::VisitKind::kModuleEnter;
    state.phase = left_phase ? 0 : visit.phase;
    state.module = inside_module ? visit.module : 0;
    state.since_ns = std::max(state.since_ns, visit.time_ns);
    return;
  }
}

void place_by_call(const Call& call, RankState& state) {
  state.step = call.step;
  state.phase = call.phase;
  state.module = call.module;
  state.site = call.site;
  state.since_ns = call.enter_ns;
}

bool has(const std::vector<Rank>& ranks, Rank rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

}  // namespace

const Stack* main_stack(const RankRecords& records) {
  for (std::uint64_t n = records.stacks.end(); n-- > records.stacks.first();) {
    const Stack& stack = records.stacks.at(n);
    if (stack.tid == static_cast<std::uint32_t>(records.pid) && stack.site) return &stack;
  }
  return nullptr;
}

RankState state_of(const JobView&, const RankView& rank) {
  RankState state;
  const RankRecords& records = rank.records();
  const Call* awaited = oldest_awaited(rank);
  state.call = awaited ? awaited : last_call(records);
  if (awaited) {
    state.doing = RankState::Doing::kWaits;
  } else if (creating_since(rank)) {
    state.doing = RankState::Doing::kCreating;
  }
  if (state.call) place_by_call(*state.call, state);
  if (!awaited) {
    if (state.call) state.since_ns = std::max(state.call->enter_ns, state.call->return_ns);
    if (records.step != kNoStep) state.step = records.step;
    if (records.visits.size() > 0) place_by_visits(records, state);
    if (std::uint64_t since = creating_since(rank)) state.since_ns = since;
  }
  const Stack* stack = main_stack(records);
  if (stack && (!state.call || stack->time_ns >= state.call->enter_ns)) {
    state.site = stack->site;
    state.site_is_stack = true;
  }
  return state;
}

const char* text_of(RankState::Doing doing) {
  switch (doing) {
    case RankState::Doing::kWaits:
      return "waits";
    case RankState::Doing::kCreating:
      return "creates a communicator";
    case RankState::Doing::kOnHost:
      break;
  }
  return "on the host";
}

std::string ending_text(const RankView& rank) {
  if (rank.alive()) return "";
  const Death& death = *rank.journal().death;
  if (death.known == EndingKnown::kNo) return "unknown, SIGKILL likely";
  return (death.by_signal ? "signal " : "status ") + std::to_string(death.code);
}

std::uint64_t state_key(const JobView& view, const RankView& rank, const RankState& state) {
  using flight::mix;
  std::string ending = ending_text(rank);
  std::uint64_t key = flight::fnv1a(ending.data(), ending.size());
  key = mix(key, static_cast<std::uint64_t>(state.doing));
  key = mix(key, static_cast<std::uint64_t>(state.step));
  key = mix(mix(key, state.phase), state.module);
  key = mix(key, view.names().place_of(state.site));
  if (!state.call) return key;
  const auto& comms = rank.records().comms;
  key = mix(key, signature(rank, *state.call));
  // Numbers of sends and receives are of one peer, which every rank has others of.
  if (view.op_traits(rank, *state.call) & flight::kOpCollective) key = mix(key, state.call->number);
  if (state.call->comm < comms.size())
    key = mix(key, static_cast<std::uint64_t>(comms[state.call->comm].size));
  return key;
}

std::vector<RankClass> rank_classes(const JobView& view, const Report& report) {
  std::vector<RankClass> classes;
  std::unordered_map<std::uint64_t, std::size_t> by_key;
  for (std::size_t r = 0; r < view.ranks.size(); ++r) {
    RankState state = state_of(view, view.ranks[r]);
    auto [at, is_new] = by_key.try_emplace(state_key(view, view.ranks[r], state), classes.size());
    if (is_new) classes.push_back({{}, state});
    classes[at->second].members.push_back(r);
  }
  auto suspected = [&](const RankClass& one) {
    return !report.findings.empty() &&
           std::any_of(one.members.begin(), one.members.end(), [&](std::size_t member) {
             return has(report.findings[0].suspects, view.ranks[member].rank);
           });
  };
  std::stable_partition(classes.begin(), classes.end(), suspected);
  return classes;
}

}  // namespace dshang::job
