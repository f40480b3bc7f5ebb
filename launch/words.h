// Finding the launchers in a command.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace dshang::launch {

enum class Launcher {
  kNone,
  kPython,  // a program that is its own rank, or starts ranks itself
  kDeepSpeed,
  kTorchrun,
  kAccelerate,
  kSrun,
  kMpirun,
  kApptainer,
  kSingularity,
  kEnroot,
};

struct Found {
  Launcher launcher = Launcher::kNone;
  std::size_t at = 0;       // its name
  std::size_t options = 0;  // the first word behind its name (behind `-m <module>`)
};

// The launcher that stands at the beginning, or behind programs that hand their environment on (env, nohup,
// timeout, numactl, ...); kNone where the command begins with something else.
Found first_launcher(const std::vector<std::string>& words);
// The next one behind `from`; kNone where there is none.
Found next_launcher(const std::vector<std::string>& words, std::size_t from);

std::string base_name(const std::string& path);

// The position behind the options that begin at `from`: of the first word that is neither an option nor the
// value of one.  `flags` are those without a value, as they are written.
std::size_t end_of_options(const std::vector<std::string>& words, std::size_t from,
                           std::initializer_list<std::string_view> flags);

// Where an option is given within [from, to): as `--name value` or `--name=value`.
struct Given {
  std::size_t at = 0;  // the word that holds the value
  bool joined = false;
  bool there = false;
};
Given find_option(const std::vector<std::string>& words, std::size_t from, std::size_t to,
                  std::initializer_list<std::string_view> names);
std::string value_of(const std::vector<std::string>& words, const Given& given);
// Puts another value in its place.
void replace_value(std::vector<std::string>* words, const Given& given, const std::string& value);

}  // namespace dshang::launch
