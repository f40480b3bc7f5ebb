// CLI11 takes a word [a,b] for a list and splits it, also in a command that is only to be started.  Such
// words travel behind a mark, which each option takes off again.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace dshang::monitor::cli {

// The words of a command line behind its name, as CLI11 parses them: last one first.
std::vector<std::string> marked_words(int argc, char** argv);

// Of the program and all its commands.
void take_marks_off(CLI::App& app);

// A text of CLI11's that may hold such words.
std::string without_marks(std::string text);

}  // namespace dshang::monitor::cli
