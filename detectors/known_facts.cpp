#include "detectors/known_facts.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "core/job/long_text.h"

namespace dshang::detect {
namespace {

constexpr std::size_t kSidesShown = 4;

const job::FactRecord* newest(const JobView& view, const job::RankView& rank, std::string_view key) {
  const auto& facts = rank.records().facts;
  for (std::uint64_t n = facts.end(); n-- > facts.first();) {
    if (view.names().text(facts.at(n).key) == key) return &facts.at(n);
  }
  return nullptr;
}

// A communicator of several, but not all ranks, or a model of several parts: data may follow that structure.
bool has_parts(const JobView& view) {
  for (const job::RankView& rank : view.ranks) {
    if (newest(view, rank, "model.parallel")) return true;
  }
  return std::any_of(view.comms.begin(), view.comms.end(),
                     [&](const job::CommView& comm) { return comm.size > 1 && comm.size < view.world_size; });
}

}  // namespace

const std::string& fact_of(const JobView& view, const job::RankView& rank,
                           std::initializer_list<std::string_view> keys) {
  for (std::string_view key : keys) {
    if (const job::FactRecord* fact = newest(view, rank, key)) return view.names().text(fact->value);
  }
  return view.names().text(0);
}

std::string whole_fact_of(const JobView& view, const job::RankView& rank, const std::string& key) {
  return job::whole_text(
      key, [&](const std::string& one) -> const std::string& { return fact_of(view, rank, {one}); });
}

std::uint64_t fact_time(const JobView& view, const job::RankView& rank, std::string_view key) {
  const job::FactRecord* fact = newest(view, rank, key);
  return fact ? fact->time_ns : 0;
}

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::vector<const job::RankView*> real_ranks(const JobView& view) {
  std::vector<const job::RankView*> ranks;
  for (const job::RankView& rank : view.ranks) {
    if (!rank.records().provisional) ranks.push_back(&rank);
  }
  return ranks;
}

std::vector<DataParallelGroup> data_parallel_groups(const JobView& view) {
  std::vector<const job::RankView*> all = real_ranks(view);
  std::map<std::string, DataParallelGroup> by_members;  // "0 1 2 3"
  for (const job::RankView* rank : all) {
    const std::string& members = fact_of(view, *rank, {"data_parallel.ranks"});
    if (!members.empty()) by_members[members] = {{}, true};
  }
  // By what any member says: a rank that hangs before its framework is ready says nothing itself.
  for (auto& [members, group] : by_members) {
    std::string listed = " " + members + " ";
    for (const job::RankView* rank : all) {
      if (listed.find(" " + std::to_string(rank->rank) + " ") != listed.npos) group.ranks.push_back(rank);
    }
  }
  if (by_members.empty() && !has_parts(view)) by_members[""] = {std::move(all), false};
  std::vector<DataParallelGroup> groups;
  for (auto& [members, group] : by_members) {
    if (group.ranks.size() > 1) groups.push_back(std::move(group));
  }
  return groups;
}

bool finished_a_step(const job::RankView& rank) {
  const auto& visits = rank.records().visits;
  std::int64_t first = job::kNoStep;
  for (std::uint64_t n = visits.first(); n < visits.end(); ++n) {
    const job::Visit& visit = visits.at(n);
    if (visit.torn || visit.kind != flight::VisitKind::kStep) continue;
    if (first != job::kNoStep && visit.step != first) return true;
    first = visit.step;
  }
  return false;
}

std::vector<ValueSide> sides_of(const std::vector<std::pair<Rank, std::string>>& values) {
  std::vector<ValueSide> sides;
  for (const auto& noted : values) {
    const std::string& value = noted.second;
    if (value.empty()) continue;
    auto side =
        std::find_if(sides.begin(), sides.end(), [&](const ValueSide& s) { return s.value == value; });
    if (side == sides.end()) side = sides.insert(sides.end(), ValueSide{value, {}});
    side->ranks.push_back(noted.first);
  }
  std::stable_sort(sides.begin(), sides.end(),
                   [](const ValueSide& a, const ValueSide& b) { return a.ranks.size() > b.ranks.size(); });
  return sides;
}

std::vector<Rank> minority(const std::vector<ValueSide>& sides) {
  std::vector<Rank> rest;
  for (std::size_t i = 1; i < sides.size(); ++i)
    rest.insert(rest.end(), sides[i].ranks.begin(), sides[i].ranks.end());
  if (sides.empty() || rest.size() >= sides[0].ranks.size()) return {};
  std::sort(rest.begin(), rest.end());
  return rest;
}

std::string sides_text(const std::vector<ValueSide>& sides, const std::string& unit) {
  std::string text;
  for (std::size_t i = 0; i < sides.size() && i < kSidesShown; ++i) {
    text += (i ? "; " : "") + sides[i].value + (unit.empty() ? "" : " " + unit) + " on " +
            job::ranks_text(sides[i].ranks);
  }
  if (sides.size() > kSidesShown) text += " and " + std::to_string(sides.size() - kSidesShown) + " more";
  return text;
}

bool gathers_weights(const JobView& view, const Divergence& d) {
  for (const job::RankView& rank : view.ranks) {
    if (const std::string& stage = fact_of(view, rank, {"deepspeed.stage"}); !stage.empty())
      return stage == "3";
  }
  if (!d.story.from_visits) return true;  // the calls that were left out or added are gathers (only_modules)
  const job::RankView* witness = view.by_rank(d.witness);
  if (!witness) return false;
  const auto& visits = witness->records().visits;
  for (std::uint64_t n = visits.first(); n < visits.end(); ++n) {
    if (visits.at(n).kind == flight::VisitKind::kGather) return true;
  }
  const auto& calls = witness->records().calls;
  for (std::uint64_t n = calls.first(); n < calls.end(); ++n) {
    const job::Call& call = calls.at(n);
    bool of_model = call.module || job::is_forward_phase(view.names().text(call.phase));
    if (!call.torn && of_model && view.op_name(*witness, call) == "all_gather") return true;
  }
  return false;
}

}  // namespace dshang::detect
