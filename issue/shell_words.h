// A command as a text, and as words.
#pragma once

#include <string>
#include <vector>

namespace dshang::issue {

// The words as a POSIX shell splits them: quotes and backslashes, nothing else.
std::vector<std::string> words_of_command(const std::string& command);

// The reverse: words are quoted where they have to be.
std::string command_text(const std::vector<std::string>& words);

}  // namespace dshang::issue
