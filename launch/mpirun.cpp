// Open MPI hands the environment to ranks of its own node only: -x NAME does it for the others, once an
// application context (they are separated by a colon), and the last one counts.  It refuses -x beside
// mca_base_env_list. MPICH's and Intel's (Hydra) hand everything on unless -genvnone or a list is given;
// -genv NAME VALUE always does.
#include <algorithm>

#include "launch/carried.h"
#include "launch/launchers.h"

namespace dshang::launch {
namespace {

constexpr const char* kList = "mca_base_env_list";

bool is_open_mpi(const std::string& version) {
  return version.find("Open MPI") != std::string::npos || version.find("OpenRTE") != std::string::npos ||
         version.find("PRRTE") != std::string::npos;
}

bool is_hydra(const std::string& version) {
  return version.find("HYDRA") != std::string::npos || version.find("Intel(R) MPI") != std::string::npos ||
         version.find("MPICH") != std::string::npos;
}

// A preload that the user's own words set stays, behind the library.
void keep_preload(const Place& place, std::size_t from, Plan* plan) {
  Words& words = plan->command;
  const std::string beginning = std::string(kPreload) + "=";
  for (std::size_t at = from; at + 1 < words.size(); ++at) {
    std::string& value = words[at + 1];
    if (words[at] == "-x" && value.starts_with(beginning))
      value = beginning + in_front(preload_of(place), value.substr(beginning.size()));
    bool two = (words[at] == "-genv" || words[at] == "-env") && value == kPreload && at + 2 < words.size();
    if (two) words[at + 2] = in_front(preload_of(place), words[at + 2]);
  }
}

// Whether the words set the list; it is extended then.
bool extend_list(const Place& place, std::size_t from, Plan* plan) {
  Words& words = plan->command;
  for (std::size_t at = from; at + 2 < words.size(); ++at) {
    if ((words[at] != "--mca" && words[at] != "-mca") || words[at + 1] != kList) continue;
    words[at + 2] = with_carried(words[at + 2], ';', place, *plan);
    return true;
  }
  const std::string variable = std::string("OMPI_MCA_") + kList;
  auto set = place.environment.find(variable);
  if (set == place.environment.end() || set->second.empty()) return false;
  plan->environment[variable] = with_carried(set->second, ';', place, *plan);
  return true;
}

// `added` behind the launcher's name and, for each further application, behind its colon.
void insert_everywhere(std::size_t at, const Words& added, bool each, Plan* plan) {
  Words& words = plan->command;
  words.insert(words.begin() + static_cast<std::ptrdiff_t>(at), added.begin(), added.end());
  for (std::size_t i = at + added.size(); each && i < words.size(); ++i) {
    if (words[i] != ":") continue;
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, added.begin(), added.end());
    i += added.size();
  }
}

void take_nodes(const Found& found, Plan* plan) {
  Given file = find_option(plan->command, found.options, next_launcher(plan->command, found.at).at,
                           {"--hostfile", "-hostfile", "--machinefile", "-machinefile", "-f"});
  if (file.there) plan->nodes = Nodes{value_of(plan->command, file), "", "", -1, ""};
}

}  // namespace

bool plan_mpirun(const Place& place, const Found& found, Plan* plan, std::string*) {
  agree_on_folder(place, plan);
  take_nodes(found, plan);
  keep_preload(place, found.options, plan);
  const std::string version = place.version_of(plan->command[found.at]);
  Words added;
  if (is_open_mpi(version)) {
    if (extend_list(place, found.options, plan)) {
      plan->way = kList;
      return true;
    }
    for (const std::string& name : carried_names(place, *plan)) added.insert(added.end(), {"-x", name});
    plan->way = "mpirun -x";
    insert_everywhere(found.options, added, true, plan);
  } else if (is_hydra(version)) {
    for (const std::string& name : carried_names(place, *plan))
      added.insert(added.end(), {"-genv", name, carried_value(place, *plan, name)});
    plan->way = "mpirun -genv";
    insert_everywhere(found.options, added, false, plan);
  } else {
    plan->remarks.push_back(
        plan->command[found.at] +
        " is neither Open MPI nor MPICH nor Intel MPI: it gets the environment alone, and ranks "
        "on other nodes have the preload only if it passes that on");
  }
  return true;
}

}  // namespace dshang::launch
