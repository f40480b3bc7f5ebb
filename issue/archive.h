// Files packed by the programs tar and zstd.
#pragma once

#include <string>

namespace dshang::issue {

// Packs <parent>/<name>/ into `archive` (*.tar.zst, to be read by its owner alone).  "" or why it could not
// be made.
std::string pack(const std::string& parent, const std::string& name, const std::string& archive);

}  // namespace dshang::issue
