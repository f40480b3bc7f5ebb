// srun hands its whole environment on unless --export, or SLURM_EXPORT_ENV where that is absent, says
// otherwise.  Names without a value are taken from its environment, so that no value has to be quoted.
#include "launch/carried.h"
#include "launch/launchers.h"

namespace dshang::launch {
namespace {

// Options of srun without a value, or with one that only ever follows an equals sign.
std::size_t end_of_srun_options(const Words& words, std::size_t from) {
  return end_of_options(words, from,
                        {"-E",
                         "-H",
                         "-I",
                         "-K",
                         "-O",
                         "-Q",
                         "-V",
                         "-X",
                         "-Z",
                         "-h",
                         "-k",
                         "-l",
                         "-s",
                         "-u",
                         "-v",
                         "-vv",
                         "-vvv",
                         "--bcast",
                         "--compress",
                         "--container-entrypoint",
                         "--container-mount-home",
                         "--container-readonly",
                         "--container-remap-root",
                         "--container-writable",
                         "--contiguous",
                         "--disable-status",
                         "--exact",
                         "--exclusive",
                         "--external",
                         "--get-user-env",
                         "--help",
                         "--hold",
                         "--immediate",
                         "--interactive",
                         "--join",
                         "--kill-on-bad-exit",
                         "--label",
                         "--multi-prog",
                         "--nice",
                         "--no-allocate",
                         "--no-container-entrypoint",
                         "--no-container-mount-home",
                         "--no-container-remap-root",
                         "--no-kill",
                         "--overcommit",
                         "--overlap",
                         "--oversubscribe",
                         "--preserve-env",
                         "--propagate",
                         "--pty",
                         "--quiet",
                         "--quit-on-interrupt",
                         "--reboot",
                         "--resv-ports",
                         "--send-libs",
                         "--share",
                         "--spread-job",
                         "--stepmgr",
                         "--test-only",
                         "--treewidth-off",
                         "--unbuffered",
                         "--usage",
                         "--use-min-nodes",
                         "--verbose",
                         "--version",
                         "--whole",
                         "--x11"});
}

// A list that begins with all, or one without; NONE and NIL are lists of nothing.
std::string export_list(const std::string& list, const Place& place, const Plan& plan) {
  if (list == "NONE" || list == "NIL" || list == "none" || list == "nil")
    return with_carried("", ',', place, plan);
  if (list.empty() || list == "ALL" || list == "all") return list;
  return with_carried(list, ',', place, plan);
}

// Pyxis runs the command in a container, where the library has to be at the same path.
void mount_folder(const Place& place, std::size_t from, std::size_t* to, Plan* plan) {
  if (!find_option(plan->command, from, *to, {"--container-image", "--container-name"}).there) return;
  std::string folder = place.library.substr(0, place.library.rfind('/'));
  std::string mount = folder + ":" + folder + ":ro";
  Given given = find_option(plan->command, from, *to, {"--container-mounts"});
  if (given.there) {
    replace_value(&plan->command, given, value_of(plan->command, given) + "," + mount);
  } else {
    plan->command.insert(plan->command.begin() + static_cast<std::ptrdiff_t>(from),
                         "--container-mounts=" + mount);
    ++*to;
  }
}

}  // namespace

bool plan_srun(const Place& place, const Found& found, Plan* plan, std::string*) {
  agree_on_folder(place, plan);
  std::size_t end = end_of_srun_options(plan->command, found.options);
  Given given = find_option(plan->command, found.options, end, {"--export"});
  auto variable = place.environment.find("SLURM_EXPORT_ENV");
  if (given.there) {
    replace_value(&plan->command, given, export_list(value_of(plan->command, given), place, *plan));
    plan->way = "srun's --export";
  } else if (variable != place.environment.end() && !variable->second.empty()) {
    plan->environment["SLURM_EXPORT_ENV"] = export_list(variable->second, place, *plan);
    plan->way = "SLURM_EXPORT_ENV";
  } else {
    plan->way = "the environment, which srun hands on";
  }
  mount_folder(place, found.options, &end, plan);
  return true;
}

}  // namespace dshang::launch
