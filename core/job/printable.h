// Text of other processes, made fit for reports.
#pragma once

#include <string>
#include <string_view>

namespace dshang::job {

// Valid UTF-8 without control characters except tab and newline; every other byte becomes '?'.
std::string printable(std::string_view text);

// The same on one line: a blank in the place of tab and newline.
std::string printable_line(std::string_view text);

}  // namespace dshang::job
