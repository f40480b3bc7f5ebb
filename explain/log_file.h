// Reads a log from a file, a pipe or standard input, packed by gzip or not.
#pragma once

#include <functional>
#include <string>

#include "explain/observed.h"

namespace dshang::explain {

// Called now and then with the part of the file that is read, 0 to 1; -1 unknown.
using Progress = std::function<void(double part)>;

// `path` "-" is standard input.  What ranks the file's lines belong to is taken from its name where torchrun
// wrote it (…/3/stderr.log).  Throws std::runtime_error when it cannot be opened; later trouble is noted in
// LogFile.
void read_log(const std::string& path, Observed* observed, const Progress& progress);

}  // namespace dshang::explain
