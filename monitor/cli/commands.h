// The verbs of the dshang program.  Each adds itself to the command line and says what to do when it is
// chosen.
//
// A command returns the exit status: 0, or 2 for input that it cannot use, with one line on stderr; doctor
// returns 1 for what will fail or hang, explain for a known error, issue for a bundle without its archive.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace dshang::monitor::cli {

using Run = std::function<int()>;

void add_monitor(CLI::App& app, Run* chosen);
void add_report(CLI::App& app, Run* chosen);
void add_top(CLI::App& app, Run* chosen);
void add_path(CLI::App& app, Run* chosen);
void add_dry_run(CLI::App& app, Run* chosen);
void add_run(CLI::App& app, Run* chosen);
// The words of the command line tell which of them stand behind --.
void add_doctor(CLI::App& app, Run* chosen, int argc, char** argv);
void add_explain(CLI::App& app, Run* chosen);

// "dshang: <text>" on stderr; returns 2.
int bad_input(const std::string& text);

// The directory of the running program, without a slash at its end.
std::string program_directory();
// libdshang.so as it belongs to this program: beside it, or in ../lib; "" where it is not.
std::string library_path();
// libdshang_dlsym.so, beside it.
std::string dlsym_path();

// The same of -- in the issue's.
void add_issue(CLI::App& app, Run* chosen, int argc, char** argv);

// Refuses an empty word: a path that a variable did not fill is not one that was left out.
CLI::Validator not_empty();

// How many words stand behind the first --; 0 without one.
std::size_t words_behind_dashes(int argc, char** argv);

}  // namespace dshang::monitor::cli
