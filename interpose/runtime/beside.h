// Files that lie beside libdshang.so.
#pragma once

#include <cstddef>

namespace dshang::interpose {

inline constexpr std::size_t kLongestPath = 4096;

// Writes the absolute path of `file` in the library's directory.  False: the directory is not known, the path
// is too long, or the file cannot be read.  Not async-signal-safe; one thread at a time.
bool beside_library(const char* file, char* path, std::size_t size);

}  // namespace dshang::interpose
