// What ranks noted of themselves (facts), arranged for detectors that compare it.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/registry.h"

namespace dshang::detect {

// The newest value of the first of these keys that the rank noted; "" when it noted none.
const std::string& fact_of(const JobView& view, const job::RankView& rank,
                           std::initializer_list<std::string_view> keys);
// Of a text that the rank noted in pieces where it was long; "" where it was not recorded whole.
std::string whole_fact_of(const JobView& view, const job::RankView& rank, const std::string& key);
// When that was, 0 = never.
std::uint64_t fact_time(const JobView& view, const job::RankView& rank, std::string_view key);
std::optional<std::int64_t> number_of(std::string_view text);  // whole numbers from 0 only

// Ranks with a communicator: others are claims of the environment and may not be named.
std::vector<const job::RankView*> real_ranks(const JobView& view);

// Ranks that hold the same model and differ in their data.
struct DataParallelGroup {
  std::vector<const job::RankView*> ranks;
  bool known = false;  // the framework said so; else it is the whole job, which has no smaller communicator
};
// Groups of two and more.  Empty where a job has smaller communicators, or parts of a model by rank, and its
// framework does not say which ranks are data-parallel.
std::vector<DataParallelGroup> data_parallel_groups(const JobView& view);

// A communicator may be made with its first call: only after a whole step a rank has those that it needs.
bool finished_a_step(const job::RankView& rank);

// Whether entering a module gathers its weights from all ranks (ZeRO-3): by what DeepSpeed said of itself,
// else by what the witness of the divergence recorded.
bool gathers_weights(const JobView& view, const Divergence& d);

struct ValueSide {
  std::string value;
  std::vector<Rank> ranks;
};
// Sides of equal value, the largest first; ranks whose value is "" are left out.
std::vector<ValueSide> sides_of(const std::vector<std::pair<Rank, std::string>>& values);
// Ranks outside the largest side, where that is more than half; else none.
std::vector<Rank> minority(const std::vector<ValueSide>& sides);
// "1.2 on ranks 0-6; 1.3 on rank 7"; `unit` stands behind each value
std::string sides_text(const std::vector<ValueSide>& sides, const std::string& unit = "");

}  // namespace dshang::detect
