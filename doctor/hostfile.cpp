#include "doctor/hostfile.h"

#include <algorithm>
#include <string_view>

namespace dshang::doctor {

std::optional<HostfileEntry> entry_of(const std::string& line) {
  constexpr std::string_view kBlanks = " \t\r\n\v\f", kKey = "slots=", kDigits = "0123456789";
  std::size_t from = line.find_first_not_of(kBlanks);
  if (from == std::string::npos || line[from] == '#') return std::nullopt;
  std::size_t to = line.find_first_of(kBlanks, from);
  std::size_t key = line.find_first_not_of(kBlanks, to);
  if (key == std::string::npos || line.compare(key, kKey.size(), kKey) != 0) return std::nullopt;
  std::size_t digits = key + kKey.size();
  std::size_t end = std::min(line.find_first_not_of(kDigits, digits), line.size());
  if (end == digits) return std::nullopt;
  HostfileEntry entry{line.substr(from, to - from)};
  for (std::size_t i = digits; i < end && !entry.too_many; ++i) {
    entry.slots = entry.slots * 10 + (line[i] - '0');
    entry.too_many = entry.slots > kMostSlots;
  }
  if (entry.too_many) entry.slots = kMostSlots;
  return entry;
}

}  // namespace dshang::doctor
