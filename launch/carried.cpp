#include "launch/carried.h"

#include <algorithm>
#include <sstream>

#include "launch/words.h"

namespace dshang::launch {
namespace {

constexpr const char* kPrefix = "DSHANG_";

std::vector<std::string> split(const std::string& list, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(list);
  for (std::string part; std::getline(stream, part, separator);) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

}  // namespace

std::string preload_of(const Place& place) {
  return place.dlsym.empty() ? place.library : place.library + ":" + place.dlsym;
}

std::string in_front(const std::string& ours, const std::string& preloaded) {
  std::string text = ours, one;
  const std::vector<std::string> first = split(ours, ':');
  auto take = [&] {
    bool again = std::any_of(first.begin(), first.end(),
                             [&](const std::string& path) { return base_name(path) == base_name(one); });
    if (!one.empty() && !again) text += ":" + one;
    one.clear();
  };
  for (char c : preloaded) {  // ld.so(8): blanks or colons
    if (c == ' ' || c == ':') {
      take();
    } else {
      one += c;
    }
  }
  take();
  return text;
}

std::vector<std::string> carried_names(const Place& place, const Plan& plan) {
  std::vector<std::string> names;
  for (const Variables* variables : {&place.environment, &plan.environment}) {
    for (const auto& [name, value] : *variables) {
      if (name.starts_with(kPrefix) && std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  names.insert(names.begin(), kPreload);
  return names;
}

std::string carried_value(const Place& place, const Plan& plan, const std::string& name) {
  for (const Variables* variables : {&plan.environment, &place.environment}) {
    if (auto at = variables->find(name); at != variables->end()) return at->second;
  }
  return "";
}

std::string with_carried(const std::string& list, char separator, const Place& place, const Plan& plan) {
  std::vector<std::string> parts = split(list, separator);
  const std::string preload = std::string(kPreload) + "=";
  for (std::string& part : parts) {
    if (part.starts_with(preload)) part = preload + in_front(preload_of(place), part.substr(preload.size()));
  }
  for (const std::string& name : carried_names(place, plan)) {
    bool there = std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
      return part == name || part.starts_with(name + "=");
    });
    if (!there) parts.push_back(name);
  }
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : std::string(1, separator)) + part;
  return text;
}

}  // namespace dshang::launch
