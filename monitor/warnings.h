// What is wrong with the DSHANG_* variables of this process's environment, one line each.
#pragma once

#include <string>
#include <vector>

namespace dshang::monitor {

// `library`: path of libdshang.so, whose parameters are known names too.  Where they cannot be read ("", or
// no such file), no name is called unknown.
std::vector<std::string> environment_warnings(const std::string& library);

// All parameters of program and library, as `dshang --params` prints them.
std::string params_text(const std::string& library);

}  // namespace dshang::monitor
