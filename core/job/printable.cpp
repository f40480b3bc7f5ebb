#include "core/job/printable.h"

#include <algorithm>
#include <cstddef>

namespace dshang::job {
namespace {

// Length of the well-formed UTF-8 sequence at the start of `text`, 0 = none (Unicode 15, table 3-7).
std::size_t sequence_length(std::string_view text) {
  auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  auto tail = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
  unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return tail(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    bool allowed = (lead != 0xe0 || byte(1) >= 0xa0) && (lead != 0xed || byte(1) <= 0x9f);
    return allowed && tail(1) && tail(2) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    bool allowed = (lead != 0xf0 || byte(1) >= 0x90) && (lead != 0xf4 || byte(1) <= 0x8f);
    return allowed && tail(1) && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

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
