// `dshang run`: how the preload and the DSHANG_* variables reach the ranks of a launch command.
//
// Each launcher has a way of its own, and most commands name several (srun, then Apptainer, then torchrun):
// they are gone through from the left, and each adds what it needs to one plan.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/nodes.h"

namespace dshang::launch {

using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

// What the plan rests on, besides the command.
struct Place {
  Variables environment;  // of this process
  std::string library;    // libdshang.so, absolute
  std::string home;       // of the user, as Python's expanduser finds it
  std::string folder;     // working directory
  std::string
      new_folder;  // for the job's files where DSHANG_DIR is not set and several nodes must agree on one
  // What `<program> --version` prints; asked for mpirun and its like alone.
  std::function<std::string(const std::string& program)> version_of;
  std::string dlsym = "";  // libdshang_dlsym.so, absolute, where it is to be preloaded too
};

struct Plan {
  Variables environment;  // to be set for the command
  Words command;
  std::string way;                      // how it reaches the ranks, in words
  std::optional<std::string> env_file;  // text of the file that DS_ENV_FILE has to name
  std::optional<Nodes> nodes;           // that the launcher reaches by ssh
  std::vector<std::string> remarks;     // one line each, to be said
};

// nullopt: `error` says in one line what is wrong.  Reads DeepSpeed's environment files and hostfile.
std::optional<Plan> make_plan(const Place& place, Words command, std::string* error);

}  // namespace dshang::launch
