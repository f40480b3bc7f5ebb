#include "monitor/top/rank_table.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>

#include "core/flight/format.h"
#include "core/job/device_memory.h"
#include "monitor/rate.h"

namespace dshang::monitor {
namespace {

using flight::CommState;
using job::Call;
using job::JobView;
using job::RankView;
using job::Visit;

constexpr double kWaitsAfter = 1;  // seconds: a call that is younger is just running

template <typename... Values>
std::string format(const char* how, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, how, values...);
  return text;
}

std::uint64_t most_on_device(const job::RankRecords& records) {
  std::uint64_t most = job::on_device(records.peak);
  const auto& steps = records.memory_steps;
  for (std::uint64_t n = steps.first(); n < steps.end(); ++n)
    most = std::max(most, job::on_device(steps.at(n).peak));
  return most;
}

const Call* last_call_of(const job::RankRecords& records) {
  const auto& calls = records.calls;
  for (std::uint64_t n = calls.end(); n-- > calls.first();) {
    if (!calls.at(n).torn) return &calls.at(n);
  }
  return nullptr;
}

const Visit* last_visit_of(const job::RankRecords& records) {
  const auto& visits = records.visits;
  for (std::uint64_t n = visits.end(); n-- > visits.first();) {
    if (!visits.at(n).torn) return &visits.at(n);
  }
  return nullptr;
}

std::string phase_of(const JobView& view, const Call* call, const Visit* visit) {
  if (visit && (!call || visit->time_ns >= call->enter_ns)) return view.names().text(visit->phase);
  return call ? view.names().text(call->phase) : "";
}

std::string last_call_text(const JobView& view, const RankView& rank, const Call& call) {
  const job::CommView* comm = view.by_id(rank.records().comms[call.comm].id);
  std::string number = call.number != 0 ? " " + std::to_string(call.number) : "";
  return view.op_name(rank, call) + number + (comm ? " " + comm->name : "");
}

bool waits_in_any(const RankView& rank) {
  const auto& calls = rank.records().calls;
  for (std::uint64_t n = calls.end(); n-- > calls.first();) {
    if (!calls.at(n).torn && job::is_outstanding(calls.at(n))) return true;
  }
  return false;
}

std::string state_of(const JobView& view, const RankView& rank, const Call* call) {
  if (const auto& death = rank.journal().death) {
    if (death->known == job::EndingKnown::kNo) return "gone";
    return (death->by_signal ? "signal " : "ended ") + std::to_string(death->code);
  }
  if (job::creating_since(rank) != 0) return "creates comm";
  if (!call || view.ago(call->enter_ns) < kWaitsAfter) return "runs";
  return waits_in_any(rank) ? "waits" : "on the host";
}

RankRow row_of(const JobView& view, const RankView& rank) {
  const job::RankRecords& records = rank.records();
  const Call* call = last_call_of(records);
  RankRow row;
  row.ranks = {rank.rank};
  row.state = state_of(view, rank, call);
  row.step = records.step;
  row.phase = phase_of(view, call, last_visit_of(records));
  row.steps_per_second = steps_per_second(records, view.now_ns());
  row.device_bytes = job::on_device(records.live);
  row.device_peak = std::max(most_on_device(records), row.device_bytes);
  if (call) {
    row.last_call = last_call_text(view, rank, *call);
    row.since = view.ago(call->enter_ns);
    row.place = view.names().place_text(view.names().place_of(call->site));
  }
  return row;
}

std::string step_text(std::int64_t step) { return step == job::kNoStep ? "-" : std::to_string(step); }

// Seconds a step takes.
std::string pace_text(double steps_per_second) {
  if (steps_per_second <= 0) return "-";
  const double seconds = 1 / steps_per_second;
  return format(seconds < 0.1 ? "%.3f" : seconds < 10 ? "%.2f" : seconds < 100 ? "%.1f" : "%.0f", seconds);
}

std::string seconds_text(double seconds) {
  if (seconds < 0) return "-";
  if (seconds < 100) return format("%.1f", seconds);
  if (seconds < 6000) return format("%.0f", seconds);
  return format("%.0f m", seconds / 60);
}

std::string memory_text(std::uint64_t live, std::uint64_t peak) {
  constexpr double kGiB = 1 << 30;
  if (peak == 0) return "-";
  return format("%.2f/%.2f", static_cast<double>(live) / kGiB, static_cast<double>(peak) / kGiB);
}

std::string uptime_text(double seconds) {
  const auto whole = static_cast<long long>(seconds);
  return format("%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
}

// Columns that a terminal shows: no line of a table holds anything else than one-column characters.
std::size_t columns(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  std::string cut = fitted(text, width);
  std::string blanks(width - columns(cut), ' ');
  return right ? blanks + cut : cut + blanks;
}

struct Column {
  const char* name;
  std::size_t width;
  bool right;
};
constexpr Column kColumns[] = {{"rank", 5, true},   {"state", 12, false}, {"step", 6, true},
                               {"phase", 9, false}, {"s/step", 6, true},    {"GiB/peak", 11, true},
                               {"since", 5, true}};
constexpr std::size_t kShortest = 60;

template <typename Cells>
std::string line_of(const Cells& cells, const std::string& rest, std::size_t width) {
  std::string line;
  for (std::size_t i = 0; i < std::size(kColumns); ++i) {
    line += padded(cells[i], kColumns[i].width, kColumns[i].right) + ' ';
  }
  line = fitted(line + rest, width);
  line.resize(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string fitted(const std::string& text, std::size_t width) {
  if (columns(text) <= width) return text;
  std::size_t end = 0, seen = 0;
  while (seen + 1 < width) {
    do ++end;
    while (end < text.size() && (text[end] & 0xc0) == 0x80);
    ++seen;
  }
  return width == 0 ? "" : text.substr(0, end) + "…";
}

RankTable rank_table_of(const JobView& view) {
  RankTable table;
  table.dir = view.job->journal.dir;
  table.world_size = view.world_size;
  table.seconds = view.seconds(view.now_ns());
  table.ended = true;
  for (const RankView& rank : view.ranks) {
    table.rows.push_back(row_of(view, rank));
    if (rank.alive()) table.ended = false;
  }
  return table;
}

RankTable grouped(const RankTable& table) {
  RankTable result = table;
  result.rows.clear();
  std::map<std::tuple<std::string, std::int64_t, std::string, std::string>, std::size_t> places;
  for (const RankRow& row : table.rows) {
    auto [at, is_new] =
        places.try_emplace({row.state, row.step, row.phase, row.last_call}, result.rows.size());
    if (is_new) {
      result.rows.push_back(row);
      continue;
    }
    RankRow& group = result.rows[at->second];
    group.ranks.insert(group.ranks.end(), row.ranks.begin(), row.ranks.end());
    if (row.steps_per_second >= 0 &&
        (group.steps_per_second < 0 || row.steps_per_second < group.steps_per_second)) {
      group.steps_per_second = row.steps_per_second;
    }
    group.device_bytes = std::max(group.device_bytes, row.device_bytes);
    group.device_peak = std::max(group.device_peak, row.device_peak);
    group.since = std::max(group.since, row.since);
  }
  return result;
}

std::vector<std::string> lines_of(const RankTable& table, std::size_t width) {
  width = std::max(width, kShortest);
  std::size_t heard = 0;
  for (const RankRow& row : table.rows) heard += row.ranks.size();
  std::string job = std::to_string(heard) + " of " + std::to_string(table.world_size) + " ranks, " +
                    (table.ended ? "ended after " : "up ") + uptime_text(table.seconds) +
                    (!table.ended && table.age >= 0 ? format(", %.0f s ago", table.age) : "") + "  ";
  std::vector<std::string> lines = {fitted(job + table.dir, width)};
  std::vector<std::string> cells;
  for (const Column& column : kColumns) cells.emplace_back(column.name);
  lines.push_back(line_of(cells, "last call", width));
  for (const RankRow& row : table.rows) {
    cells = {job::list_of(row.ranks),
             row.state,
             step_text(row.step),
             row.phase.empty() ? "-" : row.phase,
             pace_text(row.steps_per_second),
             memory_text(row.device_bytes, row.device_peak),
             seconds_text(row.since)};
    std::string rest = row.last_call.empty() ? "none yet" : row.last_call;
    if (!row.place.empty()) rest += " at " + row.place;
    lines.push_back(line_of(cells, rest, width));
  }
  return lines;
}

}  // namespace dshang::monitor
