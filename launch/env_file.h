// DeepSpeed's environment files: NAME=VALUE lines that its runner exports on every node.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/plan.h"

namespace dshang::launch {

struct EnvLine {
  std::string name, value;
};

// The lines of <home>/NAME and <folder>/NAME, NAME being DS_ENV_FILE or .deepspeed_env, in the order in which
// DeepSpeed reads them: of two with the same name the later one counts.  nullopt: a line at which DeepSpeed
// would end; `error` says which.
std::optional<std::vector<EnvLine>> read_user_lines(const Place& place, std::string* error);

// Text of such a file.
std::string text_of(const std::vector<EnvLine>& lines);

// A value as a line for the pdsh runner, which puts it into `export NAME=VALUE; ` for the node's shell, in
// double quotes where it has characters other than letters, digits and @%+=:,./-_ (DeepSpeed 0.16 and newer),
// and pdsh replaces %n, %h, %u and %% in it.
std::string for_pdsh(const std::string& value);

// Writes the text to a file of the user's own in `folder` and returns its path; the same text gives the same
// file. Files of this kind that are older than a week are removed.  Throws std::runtime_error where it cannot
// be written.
std::string write_env_file(const std::string& folder, const std::string& text);

}  // namespace dshang::launch
