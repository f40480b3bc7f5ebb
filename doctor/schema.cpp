#include "doctor/schema.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "core/job/typing.h"

namespace dshang::doctor {
namespace {

constexpr std::size_t kMistyped = 3;  // letters

// pydantic reads a number out of a text too.
std::optional<double> as_number(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const std::string& text = value.get_ref<const std::string&>();
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::string> outside(Limit limit, double number) {
  if (limit == Limit::kNotNegative && number < 0) return "must not be negative";
  if (limit == Limit::kPositive && number <= 0) return "must be greater than 0";
  if (limit == Limit::kShare && (number < 0 || number > 1)) return "must be from 0 to 1";
  if (limit == Limit::kInnerShare && (number <= 0 || number >= 1)) return "must be between 0 and 1";
  return std::nullopt;
}

std::optional<std::string> not_one_of(const std::string& values, const Json& value) {
  std::string word = value.is_string() ? value.get<std::string>() : "";
  if (auto number = as_number(value)) word = number_text(*number);
  std::istringstream known(values);
  for (std::string one; known >> one;) {
    if (one == word) return std::nullopt;
  }
  return "must be one of " + values;
}

}  // namespace

std::string nearest(const std::string& name, const std::vector<std::string>& known) {
  std::string best;
  std::size_t least = std::min(kMistyped, std::max<std::size_t>(name.size() / 3, 1)) + 1;
  const std::string wanted = lower(name);
  for (const std::string& one : known) {
    std::size_t distance = job::typing_distance(wanted, lower(one), least);
    if (distance < least) best = one, least = distance;
  }
  return best;
}

bool fraction_refused(const SectionKey& key, const Json& value) {
  if (key.kind != Kind::kInt || !value.is_number()) return false;
  double number = value.get<double>();
  return std::isfinite(number) && std::floor(number) != number;
}

std::optional<std::string> refused(const SectionKey& key, const Json& value) {
  if (key.kind == Kind::kAny || value.is_null()) return std::nullopt;
  if (value.is_string() && value == "auto") return std::nullopt;  // dropped before it is checked
  if (key.kind == Kind::kBool)
    return truth(value) ? std::nullopt : std::optional<std::string>("must be true or false");
  if (key.kind == Kind::kOneOf) return not_one_of(key.values, value);
  if (key.kind == Kind::kText)
    return value.is_string() ? std::nullopt : std::optional<std::string>("must be a text");
  if (key.kind == Kind::kList)
    return value.is_array() ? std::nullopt : std::optional<std::string>("must be a list");
  if (key.kind == Kind::kBlock) {
    return value.is_object() ? std::nullopt : std::optional<std::string>("must be a block in braces");
  }
  auto number = as_number(value);
  if (!number) return key.kind == Kind::kInt ? "must be a whole number" : "must be a number";
  return outside(key.limit, *number);
}

}  // namespace dshang::doctor
