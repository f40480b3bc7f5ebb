// Facts that are told instead of measured.
#pragma once

#include <string>

#include "doctor/facts.h"

namespace dshang::doctor {

// What --facts leaves out: 8 ranks on one node, plain deepspeed.initialize, DeepSpeed 0.19.8, torch 2.14.1,
// nothing about machine, environment or script.
Facts assumed_facts();

// Puts what the JSON object says into `facts`; `origin` names the text in messages, and a relative path in it
// is also looked for in `directory`.  Throws std::runtime_error with one line for what it cannot use.
void apply_facts(const std::string& text, const std::string& origin, const std::string& directory,
                 Facts* facts);

// KEY=VALUE lines, as in .deepspeed_env; blank lines and # are skipped, `export ` and quotes are taken off.
std::map<std::string, std::string> read_environment(const std::string& text, const std::string& origin);

// The file's text; throws std::runtime_error naming path and reason (core/job/input_file.h), also of a text
// that is UTF-16, or too long.  "-" is standard input.
std::string read_text(const std::string& path);

Config read_config(const std::string& path);
// DeepSpeed takes a whole config, in base64, in the place of a path.  Nothing where the text is none.
std::optional<Config> config_in_base64(const std::string& text);
Hostfile read_hostfile(const std::string& path);
// The words of a launch command, taken apart; the script is read where it exists.
Launch read_launch(std::vector<std::string> words);
// A directory, or a file that lists paths below one, a line each; `latest=TEXT` tells a file's content.
Checkpoint read_checkpoint(const std::string& path);
// A Hugging Face model directory, or its config.json.
Model read_model(const std::string& path);

}  // namespace dshang::doctor
