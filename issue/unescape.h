// Texts in which letters are written as \u0041, \x41 or %41, and where each letter stood.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dshang::issue {

struct Unescaped {
  std::string text;
  std::vector<std::size_t> at;  // of each letter in the text before, and of the end
  bool changed = false;
};

// Only letters that a text in ASCII shows; other escapes stay.
Unescaped unescape(std::string_view text);

// The other way: as an address, as JSON, as base64 without = at its end write it.
std::string as_in_address(std::string_view text);
std::string as_in_json(std::string_view text);
std::string as_in_base64(std::string_view text);

}  // namespace dshang::issue
