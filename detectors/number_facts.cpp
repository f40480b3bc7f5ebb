#include "detectors/number_facts.h"

#include <cstdlib>

namespace dshang::detect {

NumberFact::NumberFact(const JobView& view, const job::RankView& rank, std::string_view key)
    : text_(fact_of(view, rank, {key})), time_ns_(fact_time(view, rank, key)) {}

std::string NumberFact::text(std::string_view word) const {
  std::string_view rest = text_;
  while (!rest.empty()) {
    std::string_view entry = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
    std::size_t split = entry.find('=');
    if (entry.substr(0, split) != word || split == entry.npos) continue;
    std::string_view value = entry.substr(split + 1);
    return value == "-" || value == "None" ? std::string() : std::string(value);
  }
  return {};
}

std::optional<double> NumberFact::number(std::string_view word) const {
  std::string value = text(word);
  if (value.empty()) return std::nullopt;
  char* end = nullptr;
  double number = std::strtod(value.c_str(), &end);
  return *end ? std::nullopt : std::optional<double>(number);
}

std::optional<std::int64_t> NumberFact::whole(std::string_view word) const { return number_of(text(word)); }

bool in_half_precision(const NumberFact& fact) {
  return fact.text("autocast") == "float16" ||
         (fact.text("autocast").empty() && fact.text("model") == "float16");
}

}  // namespace dshang::detect
