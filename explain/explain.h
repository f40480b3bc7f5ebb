// What happened, from what was seen: known errors with cause and fix, causes before consequences.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explain/catalogue.h"
#include "explain/observed.h"

namespace dshang::explain {

struct Finding {
  const Entry* entry = nullptr;
  Place place;          // of the first line
  std::string where;    // "train.log:12, ranks 0-3, 4 times"
  std::string summary;  // with the line itself
  std::vector<std::string> fix;
  bool consequence = false;
};

// Causes in the order of the log, then their consequences, then what is slow or worth knowing.
std::vector<Finding> explain(const Observed& observed);

// Where a launcher says that a rank failed and nothing else tells of an error; nullptr elsewhere.
const Sighting* unexplained_failure(const std::vector<Finding>& findings, const Observed& observed);

// What is known of a text by itself, such as an exception with its message; lines of a traceback may stand
// above it.
std::vector<Finding> explain_text(std::string_view text);

// "train.log:12"
std::string place_text(const Observed& observed, const Place& place);
// "train.log:12, ranks 0-3, 4 lines"
std::string where_text(const Observed& observed, const Place& place, const std::set<Speaker>& speakers,
                       std::uint64_t lines);
// "rank 3", "ranks 0-7 (worker-1)", "local rank 3 of worker-1"; "" unknown.
std::string speakers_text(const Observed& observed, const std::set<Speaker>& speakers);

}  // namespace dshang::explain
