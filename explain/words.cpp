#include "explain/words.h"

#include <cstdio>

namespace dshang::explain {
namespace {

constexpr std::size_t kMostRuns = 12;

}  // namespace

std::string counted(std::uint64_t number, const std::string& one) {
  return std::to_string(number) + " " + one + (number == 1 ? "" : "s");
}

std::string joined(const std::set<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text;
  std::size_t runs = 0;
  for (std::size_t i = 0; i < ranks.size() && runs < kMostRuns; ++runs) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    text += (text.empty() ? "" : ", ") + std::to_string(ranks[i]);
    if (end - i == 2) text += ", " + std::to_string(ranks[end - 1]);
    if (end - i > 2) text += "-" + std::to_string(ranks[end - 1]);
    i = end;
    if (runs + 1 == kMostRuns && i < ranks.size()) text += ", … (" + std::to_string(ranks.size()) + ")";
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

std::string number_text(double number) {
  char text[40];
  std::snprintf(text, sizeof text, "%.4g", number);
  return text;
}

std::string bytes_text(std::uint64_t bytes) {
  static const char* kUnits[] = {"bytes", "KB", "MB", "GB", "TB"};
  double number = static_cast<double>(bytes);
  int unit = 0;
  for (; number >= 1000 && unit < 4; ++unit) number /= 1000;
  char text[40];
  std::snprintf(text, sizeof text, unit && number < 10 ? "%.1f %s" : "%.0f %s", number, kUnits[unit]);
  return text;
}

}  // namespace dshang::explain
