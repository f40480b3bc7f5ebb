// The files of this folder, as they are put into a page.
#pragma once

#include <string_view>

namespace dshang::job::html {

struct Part {
  std::string_view name;  // "style.css"
  std::string_view text;
};

extern const Part parts[];  // in the order of core/job/CMakeLists.txt; the last has no name

}  // namespace dshang::job::html
