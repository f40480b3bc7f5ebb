// Where `dshang report DIR --html` writes.
#pragma once

#include <string>

namespace dshang::monitor::cli {

// Writes the page as report.html beside the report.txt of the directory that was named (a DSHANG_DIR, one of
// its attempts, or a folder of flight files).  Returns its path.  Throws DiskError.
std::string write_page(const std::string& named, const std::string& html);

}  // namespace dshang::monitor::cli
