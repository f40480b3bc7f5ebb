// A search in a text of any length.
#pragma once

#include <regex>
#include <string>

namespace dshang::doctor {

// Whether the pattern is found in a line, in its first 4096 bytes.  std::regex calls itself for each character
// that it repeats: a long run of blanks in a whole script is more than the stack holds.
bool any_line(const std::string& text, const std::regex& pattern);

}  // namespace dshang::doctor
