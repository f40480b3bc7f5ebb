// Short commands whose output is a fact.
#pragma once

#include <string>
#include <vector>

namespace dshang::doctor {

// What the command prints, standard error included; "" when it cannot be started.  It is ended after
// `seconds`.
std::string output_of(const std::vector<std::string>& words, double seconds = 1.5);
// The same, and its exit status (-1: not started, or ended by the limit).
std::string output_of(const std::vector<std::string>& words, double seconds, int* status);

// The path of a program on PATH; "" none.  A word with a slash is its own path.
std::string on_path(const std::string& name);

// The first line of a file, at most 4096 bytes of it, without blanks at its end; "" where it cannot be read.
std::string first_line(const std::string& path);

}  // namespace dshang::doctor
