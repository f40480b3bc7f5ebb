#include "detectors/meetings.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace dshang::detect {
namespace {

using job::Call;
using job::CommView;
using job::Member;

constexpr std::uint32_t kDirections = flight::kOpSend | flight::kOpRecv;

std::uint64_t arrival(const Call& call) { return std::max(call.enter_ns, call.started_ns); }

constexpr std::size_t kNone = SIZE_MAX;
constexpr std::uint64_t kAbsent = UINT64_MAX;

// Arrivals by member, kAbsent where it does not take part.
void set_times(const std::vector<std::uint64_t>& arrivals, Meeting& meeting) {
  meeting.first_ns = UINT64_MAX;
  for (std::size_t m = 0; m < arrivals.size(); ++m) {
    std::uint64_t at = arrivals[m];
    if (at == kAbsent) continue;
    meeting.first_ns = std::min(meeting.first_ns, at);
    if (at >= meeting.last_ns) {
      meeting.second_ns = meeting.last_ns;
      meeting.last_ns = at;
      meeting.latest = m;
    } else {
      meeting.second_ns = std::max(meeting.second_ns, at);
    }
  }
}

// Marks are seen a moment late, now and then in another order than they were reached; hosts keep theirs.
std::size_t ordinal(const Meeting& meeting) {
  std::size_t most = 0;
  for (std::size_t coming : meeting.comings) most = coming == kNone ? most : std::max(most, coming);
  return most;
}

// ---- exchanges
// ------------------------------------------------------------------------------------------------

using Message = std::tuple<std::int32_t, std::int32_t, std::uint64_t>;  // from, to (positions), number

// A group of sends and receives of one member.
struct Group {
  std::uint64_t number = 0;  // of the rank
  std::size_t first = 0;     // its first call: number in the ring
  std::vector<Message> messages;
  Coming coming;
};

std::vector<Group> groups_of(const JobView& view, const Member& member, std::uint64_t since_ns) {
  std::vector<Group> groups;
  const job::RankView& rank = view.ranks[member.process];
  const auto& calls = rank.records().calls;
  for (std::uint64_t n = calls.first(); n < calls.end(); ++n) {
    const Call& call = calls.at(n);
    if (call.torn || !call.group || call.comm != member.comm_index || call.enter_ns < since_ns) continue;
    std::uint32_t direction = view.op_traits(rank, call) & kDirections;
    if (!direction) continue;
    if (groups.empty() || groups.back().number != call.group)
      groups.push_back({call.group, n, {}, {&call, 0, 0, true}});
    Group& group = groups.back();
    bool sends = direction & flight::kOpSend;
    group.messages.push_back({sends ? member.position : call.root_or_peer,
                              sends ? call.root_or_peer : member.position, call.number});
    group.coming.arrival_ns = std::max(group.coming.arrival_ns, arrival(call));
    group.coming.done_ns = std::max(group.coming.done_ns, call.done_ns);
    group.coming.is_done = group.coming.is_done && job::is_done(call);
  }
  return groups;
}

// Whether most groups reach most of the others: neighbours in a ring or a pipeline do not.
bool are_exchanges(const std::vector<std::vector<Group>>& groups) {
  std::size_t all = 0, wide = 0, others = groups.size() - 1;
  for (std::size_t m = 0; m < groups.size(); ++m) {
    for (const Group& group : groups[m]) {
      std::set<std::int32_t> peers;
      for (const auto& [from, to, number] : group.messages) peers.insert(from), peers.insert(to);
      ++all;
      wide += peers.size() > 2 && 4 * (peers.size() - 1) >= 3 * others;  // it is among them itself
    }
  }
  return 2 * wide > all;
}

// Each group with those that hold the other side of its messages.
void add_exchanges(const CommView& comm, const std::vector<std::vector<Group>>& groups,
                   const std::vector<std::vector<std::size_t>>& coming_of, Meetings& meetings) {
  std::map<std::pair<Message, bool>, std::size_t> at;  // message, at its sender: index of the group
  std::map<std::int32_t, std::size_t> member_at;       // by position
  for (std::size_t m = 0; m < groups.size(); ++m) {
    std::int32_t position = comm.members[m].position;
    member_at[position] = m;
    for (std::size_t g = 0; g < groups[m].size(); ++g) {
      for (const Message& message : groups[m][g].messages)
        at[{message, std::get<0>(message) == position}] = g;
    }
  }
  for (std::size_t m = 0; m < groups.size(); ++m) {
    std::int32_t position = comm.members[m].position;
    for (std::size_t g = 0; g < groups[m].size(); ++g) {
      Meeting meeting;
      meeting.comings.assign(groups.size(), kNone);
      std::vector<std::uint64_t> arrivals(groups.size(), kAbsent);
      bool is_over = groups[m][g].coming.is_done;
      auto take = [&](std::size_t member, std::size_t group) {
        meeting.comings[member] = coming_of[member][group];
        arrivals[member] = groups[member][group].coming.arrival_ns;
        is_over = is_over && groups[member][group].coming.is_done;
      };
      take(m, g);
      for (const Message& message : groups[m][g].messages) {
        bool sends = std::get<0>(message) == position;
        auto other = member_at.find(sends ? std::get<1>(message) : std::get<0>(message));
        auto theirs = at.find({message, !sends});
        if (other == member_at.end() || theirs == at.end()) {
          is_over = false;
          break;
        }
        take(other->second, theirs->second);
      }
      if (!is_over) continue;
      set_times(arrivals, meeting);
      // Each group would tell it anew: the one that came last does.
      if (meeting.latest != m) continue;
      meeting.ordinal = ordinal(meeting);
      meetings.all.push_back(std::move(meeting));
    }
  }
}

// ---- collectives
// ------------------------------------------------------------------------------------------------

// Of each member the index of its first call since then.
std::vector<std::size_t> first_calls(const CommView& comm, std::uint64_t since_ns) {
  std::vector<std::size_t> first;
  for (const Member& member : comm.members) {
    auto at = std::partition_point(member.calls.begin(), member.calls.end(),
                                   [&](const Call* call) { return call->enter_ns < since_ns; });
    first.push_back(static_cast<std::size_t>(at - member.calls.begin()));
  }
  return first;
}

// `of_call`: by member and call from its `first` on, the index among the comings.  Their copies are read, not
// the calls: those of all members side by side would each be fetched from memory.
void add_collectives(const CommView& comm, const std::vector<std::size_t>& first,
                     const std::vector<std::vector<std::size_t>>& of_call, Meetings& meetings) {
  job::Seq from = 0, to = UINT64_MAX;
  for (std::size_t m = 0; m < comm.members.size(); ++m) {
    if (of_call[m].empty()) return;
    from = std::max(from, comm.members[m].first + first[m]), to = std::min(to, comm.members[m].last());
  }
  std::vector<std::uint64_t> arrivals(comm.members.size());
  for (job::Seq k = from; k <= to; ++k) {
    Meeting meeting;
    meeting.comings.resize(comm.members.size());
    bool is_over = true;
    for (std::size_t m = 0; is_over && m < comm.members.size(); ++m) {
      std::size_t here = of_call[m][k - comm.members[m].first - first[m]];
      meeting.comings[m] = here;
      arrivals[m] = meetings.comings[m][here].arrival_ns;
      is_over = meetings.comings[m][here].is_done;
    }
    if (!is_over) continue;
    set_times(arrivals, meeting);
    meeting.ordinal = ordinal(meeting);
    meetings.all.push_back(std::move(meeting));
  }
}

}  // namespace

Meetings meetings_of(const JobView& view, const CommView& comm, std::uint64_t since_ns) {
  Meetings meetings{&comm, std::vector<std::vector<Coming>>(comm.members.size()), {}};
  std::vector<std::vector<Group>> groups;
  for (const Member& member : comm.members) groups.push_back(groups_of(view, member, since_ns));
  bool exchanges = comm.members.size() > 2 && are_exchanges(groups);
  // In the order of the host: collectives and groups side by side.
  std::vector<std::size_t> first = first_calls(comm, since_ns);
  std::vector<std::vector<std::size_t>> of_call, of_group;
  for (std::size_t m = 0; m < comm.members.size(); ++m) {
    const Member& member = comm.members[m];
    std::vector<std::size_t>&calls = of_call.emplace_back(), &mine = of_group.emplace_back();
    std::size_t g = 0;
    auto add_groups = [&](const Call* until) {
      for (; exchanges && g < groups[m].size() && (!until || groups[m][g].coming.call < until); ++g) {
        mine.push_back(meetings.comings[m].size());
        meetings.comings[m].push_back(groups[m][g].coming);
      }
    };
    for (std::size_t c = first[m]; c < member.calls.size(); ++c) {
      const Call* call = member.calls[c];
      add_groups(call);  // both lie in the rank's ring
      calls.push_back(meetings.comings[m].size());
      meetings.comings[m].push_back({call, arrival(*call), call->done_ns, job::is_done(*call)});
    }
    add_groups(nullptr);
  }
  add_collectives(comm, first, of_call, meetings);
  if (exchanges) {
    add_exchanges(comm, groups, of_group, meetings);
    std::stable_sort(meetings.all.begin(), meetings.all.end(),
                     [](const Meeting& a, const Meeting& b) { return a.ordinal < b.ordinal; });
  }
  return meetings;
}

std::vector<std::vector<Stretch>> waits_in(const JobView& view, const std::vector<Meetings>& all) {
  std::vector<std::vector<Stretch>> waits(view.ranks.size());
  for (const Meetings& meetings : all) {
    for (const Meeting& meeting : meetings.all) {
      for (std::size_t m = 0; m < meeting.comings.size(); ++m) {
        if (meeting.comings[m] == kNone) continue;
        std::uint64_t at = meetings.comings[m][meeting.comings[m]].arrival_ns;
        if (at < meeting.last_ns) waits[meetings.comm->members[m].process].push_back({at, meeting.last_ns});
      }
    }
  }
  auto earlier = [](const Stretch& a, const Stretch& b) { return a.begin_ns < b.begin_ns; };
  for (std::vector<Stretch>& mine : waits) {
    if (!std::is_sorted(mine.begin(), mine.end(), earlier)) std::sort(mine.begin(), mine.end(), earlier);
    std::vector<Stretch> merged;
    for (const Stretch& one : mine) {
      if (!merged.empty() && one.begin_ns <= merged.back().end_ns) {
        merged.back().end_ns = std::max(merged.back().end_ns, one.end_ns);
      } else {
        merged.push_back(one);
      }
    }
    mine = std::move(merged);
  }
  return waits;
}

std::uint64_t outside(const Stretch& stretch, const std::vector<Stretch>& waits) {
  std::uint64_t left = stretch.end_ns - stretch.begin_ns;
  auto at = std::partition_point(waits.begin(), waits.end(),
                                 [&](const Stretch& one) { return one.end_ns <= stretch.begin_ns; });
  for (; at != waits.end() && at->begin_ns < stretch.end_ns; ++at)
    left -= std::min(at->end_ns, stretch.end_ns) - std::max(at->begin_ns, stretch.begin_ns);
  return left;
}

}  // namespace dshang::detect
