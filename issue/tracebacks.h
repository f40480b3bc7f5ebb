// Python tracebacks in a job's log.
#pragma once

#include <istream>
#include <string>
#include <vector>

namespace dshang::issue {

struct Traceback {
  std::string text;   // without the prefix of its rank, ends with a newline
  std::string first;  // prefix of the line where it began: "[rank1]: "; "" none
  int times = 1;      // equal ones, of other ranks or later
};

// In the order of their begin; at most `most` different ones, each at most 150 lines.  `left_out` counts the
// others.  Lines of several ranks are told apart by the prefix that launchers put before them.
std::vector<Traceback> tracebacks_of(std::istream& log, std::size_t most, int* left_out);

// The text without terminal colours.
std::string without_colours(std::string_view text);

}  // namespace dshang::issue
