#include "doctor/lines.h"

#include <algorithm>

namespace dshang::doctor {

bool any_line(const std::string& text, const std::regex& pattern) {
  constexpr std::size_t kLongest = 4096;
  for (std::size_t from = 0; from < text.size();) {
    std::size_t end = std::min(text.find('\n', from), text.size());
    auto begin = text.begin() + static_cast<std::ptrdiff_t>(from);
    if (std::regex_search(begin, begin + static_cast<std::ptrdiff_t>(std::min(end - from, kLongest)), pattern))
      return true;
    from = end + 1;
  }
  return false;
}

}  // namespace dshang::doctor
