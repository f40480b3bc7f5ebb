#include "core/job/model.h"

#include <algorithm>
#include <cstring>

#include "core/flight/hash.h"

namespace dshang::job {
namespace {

using flight::CommState;

Rank rank_of(const RankRecords& records) {
  return records.world_rank ? static_cast<Rank>(records.world_rank) - 1 : records.rank;
}

bool has_communicator(const RankRecords& records) {
  return std::any_of(records.comms.begin(), records.comms.end(),
                     [](const Comm& comm) { return comm.state != CommState::kCreating && comm.id != 0; });
}

// Of two processes that claim a rank, the one with communicators has it; of two such, the one that woke first
// (a helper that inherited the environment wakes later).
bool better_claim(const Process& a, const Process& b) {
  bool a_has = has_communicator(a.records), b_has = has_communicator(b.records);
  if (a_has != b_has) return a_has;
  return a.records.start_ns < b.records.start_ns;
}

void choose_ranks(const Job& job, JobView& view) {
  std::map<Rank, std::size_t> chosen;
  for (std::size_t i = 0; i < job.processes.size(); ++i) {
    Rank rank = rank_of(job.processes[i]->records);
    if (rank < 0) {
      view.auxiliary.push_back(i);
      continue;
    }
    auto [at, is_new] = chosen.emplace(rank, i);
    if (is_new) continue;
    bool takes_over = better_claim(*job.processes[i], *job.processes[at->second]);
    view.auxiliary.push_back(takes_over ? at->second : i);
    if (takes_over) at->second = i;
  }
  for (auto [rank, index] : chosen) {
    RankView r;
    r.rank = rank;
    r.index = index;
    r.process = job.processes[index].get();
    r.names = &job.names;
    view.ranks.push_back(r);
    view.world_size = std::max(view.world_size, job.processes[index]->records.world_size);
  }
}

// The collectives of one communicator, numbered without gaps; a gap (a torn record) starts anew behind it.
void collect_calls(const RankView& rank, std::vector<Member*>& by_comm) {
  const auto& calls = rank.records().calls;
  for (std::uint64_t n = calls.first(); n < calls.end(); ++n) {
    const Call& call = calls.at(n);
    if (call.torn || call.number == 0 || (call.flags & flight::kCallFailed)) continue;
    if (call.op >= rank.records().ops.size() || !(rank.records().ops[call.op].traits & flight::kOpCollective))
      continue;
    if (call.comm >= by_comm.size() || !by_comm[call.comm]) continue;
    Member& member = *by_comm[call.comm];
    if (!member.calls.empty() && call.number != member.last() + 1) member.calls.clear();
    if (member.calls.empty()) member.first = call.number;
    member.calls.push_back(&call);
  }
}

std::string name_of_comm(const JobView& view, const Comm& comm,
                         const std::map<std::uint64_t, std::string>& names,
                         std::map<std::string, int>& used) {
  std::string name;
  auto parent = names.find(comm.parent);
  if (comm.label) {
    name = view.names().text(comm.label);
  } else if (comm.origin == flight::CommOrigin::kSplit && parent != names.end()) {
    name = parent->second + "/" + std::to_string(comm.color);
  } else if (view.world_size > 0 && comm.size == view.world_size) {
    name = "world";
  } else {
    name = "group of " + std::to_string(comm.size);
  }
  int count = ++used[name];
  return count == 1 ? name : name + " #" + std::to_string(count);
}

void arrange_comms(JobView& view) {
  struct Seen {
    std::uint64_t begin_ns;
    const Comm* comm;
    std::vector<Member> members;
  };
  std::map<std::uint64_t, Seen> by_id;
  for (std::size_t r = 0; r < view.ranks.size(); ++r) {
    const auto& comms = view.ranks[r].records().comms;
    for (std::uint32_t c = 0; c < comms.size(); ++c) {
      if (comms[c].id == 0 || comms[c].state == CommState::kFailed) continue;
      auto& seen = by_id.try_emplace(comms[c].id, Seen{comms[c].begin_ns, &comms[c], {}}).first->second;
      seen.begin_ns = std::min(seen.begin_ns, comms[c].begin_ns);
      Member member;
      member.rank = view.ranks[r].rank;
      member.position = comms[c].rank;
      member.process = r;
      member.comm_index = c;
      member.first = comms[c].calls + 1;  // nothing known unless records are found
      seen.members.push_back(std::move(member));
    }
  }
  std::vector<std::pair<std::uint64_t, Seen*>> order;
  for (auto& [id, seen] : by_id) order.emplace_back(id, &seen);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::make_pair(a.second->begin_ns, a.first) < std::make_pair(b.second->begin_ns, b.first);
  });
  std::map<std::uint64_t, std::string> names;
  std::map<std::string, int> used;
  for (auto& [id, seen] : order) {
    CommView comm;
    comm.id = id;
    comm.size = seen->comm->size;
    comm.name = names[id] = name_of_comm(view, *seen->comm, names, used);
    comm.members = std::move(seen->members);
    std::sort(comm.members.begin(), comm.members.end(), [](const Member& a, const Member& b) {
      return std::make_pair(a.position, a.rank) < std::make_pair(b.position, b.rank);
    });
    view.comms.push_back(std::move(comm));
  }
}

void fill_calls(JobView& view) {
  std::vector<std::vector<Member*>> by_rank(view.ranks.size());
  for (std::size_t r = 0; r < view.ranks.size(); ++r) by_rank[r].resize(view.ranks[r].records().comms.size());
  for (CommView& comm : view.comms) {
    for (Member& member : comm.members) by_rank[member.process][member.comm_index] = &member;
  }
  for (std::size_t r = 0; r < view.ranks.size(); ++r) collect_calls(view.ranks[r], by_rank[r]);
}

// Median of the time between the last steps, in seconds; 0 with fewer than three of them.
double median_step_of(const RankRecords& records) {
  constexpr std::size_t kStepsLookedAt = 32;
  std::vector<std::uint64_t> times;
  for (std::uint64_t n = records.visits.end();
       n-- > records.visits.first() && times.size() < kStepsLookedAt;) {
    const Visit& visit = records.visits.at(n);
    if (!visit.torn && visit.kind == flight::VisitKind::kStep) times.push_back(visit.time_ns);
  }
  if (times.size() < 4) return 0;
  std::vector<double> steps;
  for (std::size_t i = 0; i + 1 < times.size(); ++i) {
    if (times[i] > times[i + 1]) steps.push_back(static_cast<double>(times[i] - times[i + 1]) / 1e9);
  }
  if (steps.empty()) return 0;
  auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::nth_element(steps.begin(), middle, steps.end());
  return *middle;
}

}  // namespace

JobView make_view(const Job& job) {
  JobView view;
  view.job = &job;
  choose_ranks(job, view);
  arrange_comms(view);
  fill_calls(view);
  for (const RankView& rank : view.ranks)
    view.median_step = std::max(view.median_step, median_step_of(rank.records()));
  return view;
}

std::vector<Rank> CommView::ranks() const {
  std::vector<Rank> ranks;
  for (const Member& member : members) ranks.push_back(member.rank);
  return ranks;
}

const Member* CommView::member_of(std::size_t process) const {
  for (const Member& member : members) {
    if (member.process == process) return &member;
  }
  return nullptr;
}

double JobView::stall_after() const {
  constexpr double kSteps = 3;
  return std::max(params().stall_after, kSteps * median_step);
}

double JobView::seconds(std::uint64_t ns) const {
  return ns <= job->journal.start_ns ? 0 : static_cast<double>(ns - job->journal.start_ns) / 1e9;
}

double JobView::ago(std::uint64_t ns) const {
  return ns >= now_ns() ? 0 : static_cast<double>(now_ns() - ns) / 1e9;
}

const RankView* JobView::by_rank(Rank rank) const {
  auto at = std::lower_bound(ranks.begin(), ranks.end(), rank,
                             [](const RankView& r, Rank n) { return r.rank < n; });
  return at != ranks.end() && at->rank == rank ? &*at : nullptr;
}

const CommView* JobView::by_id(std::uint64_t comm_id) const {
  auto at =
      std::find_if(comms.begin(), comms.end(), [&](const CommView& comm) { return comm.id == comm_id; });
  return at != comms.end() ? &*at : nullptr;
}

std::string JobView::op_name(const RankView& rank, const Call& call) const {
  const auto& ops = rank.records().ops;
  if (call.op >= ops.size()) return "unknown";
  return {ops[call.op].name, strnlen(ops[call.op].name, sizeof ops[call.op].name)};
}

std::uint32_t JobView::op_traits(const RankView& rank, const Call& call) const {
  const auto& ops = rank.records().ops;
  return call.op < ops.size() ? ops[call.op].traits : 0;
}

bool JobView::knows_purposes(const RankView& rank) const {
  return rank.records().python == 1 || rank.records().visits.end() > 0;
}

std::uint64_t signature(const RankView& rank, const Call& call) {
  const auto& ops = rank.records().ops;
  std::uint32_t traits = call.op < ops.size() ? ops[call.op].traits : 0;
  std::uint64_t hash =
      call.op < ops.size()
          ? flight::fnv1a(ops[call.op].name, strnlen(ops[call.op].name, sizeof ops[call.op].name))
          : call.op;
  hash = flight::mix(hash, call.count);
  hash = flight::mix(hash, static_cast<std::uint64_t>(call.dtype));
  if (traits & flight::kOpReduces) hash = flight::mix(hash, 1 + static_cast<std::uint64_t>(call.reduce_op));
  if (traits & flight::kOpRooted) hash = flight::mix(hash, 1 + static_cast<std::uint64_t>(call.root_or_peer));
  return hash;
}

bool is_outstanding(const Call& call) {
  if (call.flags & (flight::kCallDone | flight::kCallFailed)) return false;
  if (!(call.flags & flight::kCallReturned) || is_closing(call)) return true;
  return (call.flags & flight::kCallMarked) && !(call.flags & flight::kCallProgressUnknown);
}

bool waits_in(const RankView& rank, const Call& call) {
  constexpr std::uint64_t kAWhileNs = 500'000'000;
  if (!is_outstanding(call)) return false;
  return rank.alive() || rank.journal().death->time_ns >= call.enter_ns + kAWhileNs;
}

std::uint64_t creating_since(const RankView& rank) {
  std::uint64_t since = 0;
  for (const Comm& comm : rank.records().comms) {
    if (comm.state == CommState::kCreating && (since == 0 || comm.begin_ns < since)) since = comm.begin_ns;
  }
  return since;
}

namespace {

// Numbers and ranges "4-9", and how many ranks each is.
std::vector<std::pair<std::string, std::size_t>> pieces_of(const std::vector<Rank>& ranks) {
  std::vector<std::pair<std::string, std::size_t>> pieces;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i;
    while (end + 1 < ranks.size() && ranks[end + 1] == ranks[end] + 1) ++end;
    if (end >= i + 3) {  // 0, 1, 2 reads better than 0-2
      pieces.emplace_back(std::to_string(ranks[i]) + "-" + std::to_string(ranks[end]), end + 1 - i);
    } else {
      for (std::size_t at = i; at <= end; ++at) pieces.emplace_back(std::to_string(ranks[at]), 1);
    }
    i = end + 1;
  }
  return pieces;
}

// Of many pieces the first: "0, 2, 4 and 509 more".
std::string short_list_of(const std::vector<Rank>& ranks) {
  constexpr std::size_t kMost = 16, kToldOfMore = 12;
  const auto pieces = pieces_of(ranks);
  if (pieces.size() <= kMost) return list_of(ranks);
  std::string text;
  std::size_t told = 0;
  for (std::size_t i = 0; i < kToldOfMore; ++i) {
    text += (i == 0 ? "" : ", ") + pieces[i].first;
    told += pieces[i].second;
  }
  return text + " and " + std::to_string(ranks.size() - told) + " more";
}

}  // namespace

std::string list_of(const std::vector<Rank>& ranks) {
  std::string text;
  for (const auto& [piece, count] : pieces_of(ranks)) text += (text.empty() ? "" : ", ") + piece;
  return text;
}

std::string ranks_text(const std::vector<Rank>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + short_list_of(ranks);
}

const char* text_of(flight::DType dtype) {
  static constexpr const char* kNames[] = {nullptr, "i8",   "u8",  "i32", "u32",    "i64",    "u64",
                                           "f16",   "bf16", "f32", "f64", "f8e4m3", "f8e5m2", nullptr};
  auto at = static_cast<std::size_t>(dtype);
  return at < std::size(kNames) ? kNames[at] : nullptr;
}

const char* text_of(flight::ReduceOp op) {
  static constexpr const char* kNames[] = {nullptr, "sum", "prod", "max", "min", "avg", "premulsum", nullptr};
  auto at = static_cast<std::size_t>(op);
  return at < std::size(kNames) ? kNames[at] : nullptr;
}

}  // namespace dshang::job
