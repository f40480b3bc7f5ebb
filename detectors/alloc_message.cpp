#include "detectors/alloc_message.h"

#include <cstdlib>
#include <string>

namespace dshang::detect {
namespace {

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr Unit kUnits[] = {{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"bytes", 1}};

// The size that ends directly before `words`: "9.00 GiB" + " is reserved by ...".
std::optional<std::uint64_t> size_before(std::string_view text, std::string_view words) {
  std::size_t end = text.find(words);
  if (end == text.npos) return std::nullopt;
  for (const Unit& unit : kUnits) {
    if (end < unit.name.size() + 1 || text.substr(end - unit.name.size(), unit.name.size()) != unit.name)
      continue;
    std::size_t digits = end - unit.name.size() - 1, begin = digits;
    while (begin > 0 && (text[begin - 1] == '.' || (text[begin - 1] >= '0' && text[begin - 1] <= '9')))
      --begin;
    if (begin == digits) return std::nullopt;
    double value = std::strtod(std::string(text.substr(begin, digits - begin)).c_str(), nullptr);
    return static_cast<std::uint64_t>(value * unit.bytes);
  }
  return std::nullopt;
}

}  // namespace

std::optional<AllocatorState> allocator_state_in(std::string_view message) {
  if (auto allocated = size_before(message, " is allocated by PyTorch")) {
    auto unused = size_before(message, " is reserved by PyTorch but unallocated");
    return AllocatorState{*allocated, *allocated + unused.value_or(0)};
  }
  auto allocated = size_before(message, " already allocated"),
       reserved = size_before(message, " reserved in total");
  if (!allocated || !reserved) return std::nullopt;
  return AllocatorState{*allocated, *reserved};
}

std::vector<CardUser> other_users_in(std::string_view message) {
  constexpr std::string_view kProcess = "Process ", kHas = " has ", kInUse = " memory in use";
  std::vector<CardUser> users;
  for (std::size_t at = message.find(kProcess); at != message.npos; at = message.find(kProcess, at + 1)) {
    std::string_view rest = message.substr(at + kProcess.size());
    std::size_t digits = rest.find_first_not_of("0123456789"), end = rest.find(kInUse);
    if (digits == 0 || digits == rest.npos || rest.substr(digits, kHas.size()) != kHas || end == rest.npos) continue;
    auto bytes = size_before(rest, kInUse);
    if (bytes) users.push_back({std::atoll(std::string(rest.substr(0, digits)).c_str()), *bytes});
  }
  return users;
}

}  // namespace dshang::detect
