#include "core/job/printable.h"

#include <algorithm>
#include <cstddef>

#include "core/job/encoding.h"

namespace dshang::job {

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    std::size_t length = sequence_length(text);
    unsigned char first = static_cast<unsigned char>(text.front());
    bool control = length == 1 && ((first < 0x20 && first != '\t' && first != '\n') || first == 0x7f);
    // U+0080..U+009F are control characters too; terminals obey some of them.
    if (length == 2 && first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0) control = true;
    if (length == 0 || control) {
      out += '?';
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length ? length : 1);
  }
  return out;
}

std::string printable_line(std::string_view text) {
  std::string out = printable(text);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c == '\t' || c == '\n'; }, ' ');
  return out;
}

}  // namespace dshang::job
