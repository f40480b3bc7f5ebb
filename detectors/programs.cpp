#include "detectors/programs.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/flight/hash.h"

namespace dshang::detect {
namespace {

using job::Call;
using job::Seq;

constexpr Seq kBack = 8;                 // calls before the last common one at which the comparison begins
constexpr std::size_t kFewestAlike = 4;  // calls that all made alike before they part

struct Step {
  std::uint64_t key;
  const Call* call;
};
using Program = std::vector<Step>;

// Numbers of the communicators of a rank that it is in, by their index.
std::vector<std::uint64_t> ordinals(const job::RankRecords& records) {
  std::vector<std::uint64_t> all;
  std::uint64_t next = 0;
  for (const job::Comm& comm : records.comms) all.push_back(comm.id && comm.rank >= 0 ? next++ : 0);
  return all;
}

Program program_of(const JobView& view, const job::RankView& rank) {
  Program program;
  const job::RankRecords& records = rank.records();
  std::vector<std::uint64_t> ordinal = ordinals(records);
  for (std::uint64_t n = records.calls.first(); n < records.calls.end(); ++n) {
    const Call& call = records.calls.at(n);
    if (call.torn || call.number == 0 || call.comm >= ordinal.size()) continue;
    if (!(view.op_traits(rank, call) & flight::kOpCollective)) continue;
    std::uint64_t key = flight::mix(flight::mix(ordinal[call.comm], job::signature(rank, call)),
                                    flight::mix(call.phase, call.module));
    program.push_back({key, &call});
  }
  return program;
}

// Where call `number` of the communicator stands; the end where it is not known any more.
std::size_t place_of(const Program& program, std::uint32_t comm, Seq number) {
  auto at = std::find_if(program.begin(), program.end(), [&](const Step& step) {
    return step.call->comm == comm && step.call->number == number;
  });
  return static_cast<std::size_t>(at - program.begin());
}

// Where each program stands at a call of the communicator that all have made; empty where there is none.
std::vector<std::size_t> starts_in(const job::CommView& comm, const std::vector<const job::RankView*>& ranks,
                                   const std::vector<Program>& programs, const JobView& view) {
  std::vector<const job::Member*> members;
  Seq newest = UINT64_MAX, oldest = 1;
  for (const job::RankView* rank : ranks) {
    const job::Member* member = comm.member_of(static_cast<std::size_t>(rank - view.ranks.data()));
    if (!member || member->calls.empty()) return {};
    members.push_back(member);
    newest = std::min(newest, member->last());
    oldest = std::max(oldest, member->first);
  }
  if (newest < oldest) return {};
  Seq start = std::max(oldest, newest > kBack ? newest - kBack : 1);
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    starts.push_back(place_of(programs[i], members[i]->comm_index, start));
    if (starts.back() == programs[i].size()) return {};
  }
  return starts;
}

// The comparison begins where most is left to compare; else at the start of all, where it is still known.
std::vector<std::size_t> starts_of(const JobView& view, const std::vector<const job::RankView*>& ranks,
                                   const std::vector<Program>& programs) {
  std::vector<std::size_t> best;
  for (const job::CommView& comm : view.comms) {
    std::vector<std::size_t> starts = starts_in(comm, ranks, programs, view);
    if (!starts.empty() && (best.empty() || starts[0] > best[0])) best = starts;
  }
  bool all_known = std::all_of(ranks.begin(), ranks.end(),
                               [](const job::RankView* rank) { return rank->records().calls.first() == 0; });
  if (best.empty() && all_known) best.assign(ranks.size(), 0);
  return best;
}

}  // namespace

std::vector<Rank> first_apart(const JobView& view, const std::vector<Rank>& among) {
  std::vector<const job::RankView*> ranks;
  std::vector<Program> programs;
  for (Rank rank : among) {
    const job::RankView* one = view.by_rank(rank);
    if (!one) continue;
    ranks.push_back(one);
    programs.push_back(program_of(view, *one));
  }
  if (ranks.size() < 3) return {};
  std::vector<std::size_t> starts = starts_of(view, ranks, programs);
  if (starts.empty()) return {};
  for (std::size_t n = 0;; ++n) {
    std::map<std::uint64_t, std::vector<Rank>> camps;
    std::size_t voters = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (starts[i] + n >= programs[i].size()) continue;
      camps[programs[i][starts[i] + n].key].push_back(ranks[i]->rank);
      ++voters;
    }
    if (voters < 2) return {};
    if (camps.size() == 1) continue;
    if (n < kFewestAlike) return {};
    std::vector<Rank> rest;
    bool majority = false;
    for (const auto& [key, members] : camps) {
      bool most = 2 * members.size() > voters && members.size() > 1;
      majority = majority || most;
      if (!most) rest.insert(rest.end(), members.begin(), members.end());
    }
    std::sort(rest.begin(), rest.end());
    return majority ? rest : std::vector<Rank>{};
  }
}

}  // namespace dshang::detect
