// The state of a job's ranks as a table, for `dshang top`.
//
// Pure: text from what was recorded.  Nothing here is judged; findings come from the monitor's own report.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/job/model.h"

namespace dshang::monitor {

// What one rank does, or several that do the same.
struct RankRow {
  std::vector<job::Rank> ranks;
  std::string state;                 // "runs", "waits", "on the host", "creates comm", "ended 0", "signal 9"
  std::int64_t step = job::kNoStep;  // newest announced
  std::string phase;                 // "" not known
  double steps_per_second = -1;      // over the last steps; -1 = not known.  Of several ranks: of the slowest
  std::string last_call;             // "reduce_scatter 180 world"; "" = none yet
  double since = -1;                 // seconds since the last call began; -1 = no call
  std::uint64_t device_bytes =
      0;  // seen allocations that are live, of all kinds on the device.  Of several: most
  std::uint64_t device_peak = 0;  // the most in a step that is still known
  std::string place;              // where the last call was made: "train.py:30 step"
};

struct RankTable {
  std::string dir;
  std::int32_t world_size = 0;
  double seconds = 0;         // since job start, of the newest record
  double age = -1;            // seconds since then; -1 = not known
  bool ended = false;         // all ranks have
  std::vector<RankRow> rows;  // by rank
};

// One row a rank.
RankTable rank_table_of(const job::JobView& view);

// Ranks in an equal state share a row.
RankTable grouped(const RankTable& table);

// Lines of at most `width` columns (at least 60): a line of the job, a heading, the rows.
std::vector<std::string> lines_of(const RankTable& table, std::size_t width);

// `text` cut to so many columns, with an ellipsis where something is missing.
std::string fitted(const std::string& text, std::size_t width);

}  // namespace dshang::monitor
