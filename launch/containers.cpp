// Containers: the library has to be there under the same path, and the variables have to get in.
//
// Apptainer puts APPTAINERENV_X into the container as X, also with --cleanenv, and adds the binds of
// APPTAINER_BIND to those of its command line.  It takes SINGULARITY... only where its own variable is not
// set; the name `singularity` may be either program.  enroot takes both on its command line alone; a name
// without a value is the host's variable.
#include "launch/carried.h"
#include "launch/launchers.h"

namespace dshang::launch {
namespace {

std::string folder_of(const std::string& library) { return library.substr(0, library.rfind('/')); }

// Of the family's own variable, else of the other's; nullopt where neither is set.
std::optional<std::string> set_in(const Variables& variables, const std::string& name,
                                  const std::string& other) {
  for (const std::string& one : {name, other}) {
    if (auto at = variables.find(one); at != variables.end()) return at->second;
  }
  return std::nullopt;
}

// Whether the host's environment stays outside.
bool is_clean(const Place& place, const Words& words, std::size_t from, const std::string& family) {
  std::size_t end = end_of_options(words, from, {});
  for (std::size_t at = from; at < end; ++at) {
    for (const char* option : {"-e", "--cleanenv", "-C", "--containall"}) {
      if (words[at] == option) return true;
    }
  }
  return place.environment.contains(family + "_CLEANENV") ||
         place.environment.contains(family + "_CONTAINALL");
}

void set_family(const Place& place, const std::string& family, const std::string& other, bool clean,
                Plan* plan) {
  const std::string folder = folder_of(place.library), bind = folder + ":" + folder + ":ro";
  std::string binds = set_in(place.environment, family + "_BIND", other + "_BIND").value_or("");
  plan->environment[family + "_BIND"] = binds.empty() ? bind : binds + "," + bind;
  const std::string inside = family + "ENV_", other_inside = other + "ENV_";
  for (const std::string& name : carried_names(place, *plan)) {
    auto set = set_in(place.environment, inside + name, other_inside + name);
    if (name == kPreload) {
      const std::string outside = clean ? "" : carried_value(place, *plan, kPreload);
      plan->environment[inside + name] = in_front(preload_of(place), set.value_or(outside));
    } else if (!set) {
      plan->environment[inside + name] = carried_value(place, *plan, name);
    }
  }
}

}  // namespace

bool plan_apptainer(const Place& place, const Found& found, Plan* plan, std::string*) {
  bool apptainer = found.launcher == Launcher::kApptainer;
  const std::string own = apptainer ? "APPTAINER" : "SINGULARITY",
                    other = apptainer ? "SINGULARITY" : "APPTAINER";
  bool clean = is_clean(place, plan->command, found.options + 1, own);
  set_family(place, own, other, clean, plan);
  bool by_other_name = !apptainer && (place.environment.contains("APPTAINER_BIND") ||
                                      place.environment.contains("APPTAINERENV_LD_PRELOAD"));
  if (by_other_name) set_family(place, other, own, clean, plan);
  plan->way += " and " + own + "ENV_*";
  return true;
}

bool plan_enroot(const Place& place, const Found& found, Plan* plan, std::string*) {
  Words& words = plan->command;
  if (found.options >= words.size() || words[found.options] != "start") return true;
  const std::string beginning = std::string(kPreload) + "=";
  Words added;
  for (const std::string& name : carried_names(place, *plan))
    added.insert(added.end(), {"--env", name == kPreload ? beginning + preload_of(place) : name});
  const std::string folder = folder_of(place.library);
  added.insert(added.end(), {"--mount", folder + ":" + folder});
  std::size_t end = end_of_options(words, found.options + 1, {"-r", "--root", "-w", "--rw"});
  for (std::size_t at = found.options + 1; at + 1 < end; ++at) {
    std::string& value = words[at + 1];
    if ((words[at] == "--env" || words[at] == "-e") && value.starts_with(beginning))
      value = beginning + in_front(preload_of(place), value.substr(beginning.size()));
  }
  words.insert(words.begin() + static_cast<std::ptrdiff_t>(found.options) + 1, added.begin(), added.end());
  plan->way += " and enroot's --env";
  return true;
}

}  // namespace dshang::launch
