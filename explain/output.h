// What is printed of a log.
#pragma once

#include <string>
#include <vector>

#include "explain/explain.h"

namespace dshang::explain {

// {"schema": 1, "findings": [{"id", "severity", "where", "summary", "fix": [...]}], "unknown": [...],
// "facts": [...], "not_checked": [...]}
std::string json_of(const std::vector<Finding>& findings, const Observed& observed);
// At most kMostLines lines.
std::string text_of(const std::vector<Finding>& findings, const Observed& observed);
inline constexpr std::size_t kMostLines = 25;

// The catalogue.
std::string entries_text();
std::string entries_json();

}  // namespace dshang::explain
