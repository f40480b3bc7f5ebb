// What the doctor prints.
#pragma once

#include <string>
#include <vector>

#include "doctor/rule.h"

namespace dshang::doctor {

// {"schema": 1, "findings": [{"id", "severity", "where", "summary", "fix": [...]}], "not_checked": [...]}
std::string json_of(const std::vector<Finding>& findings, const Facts& facts);
std::string text_of(const std::vector<Finding>& findings, const Facts& facts);

// The table of rules.
std::string rules_text();
std::string rules_json();

}  // namespace dshang::doctor
