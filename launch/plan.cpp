#include "launch/plan.h"

#include "launch/carried.h"
#include "launch/launchers.h"

namespace dshang::launch {
namespace {

bool plan_one(const Place& place, const Found& found, Plan* plan, std::string* error) {
  switch (found.launcher) {
    case Launcher::kDeepSpeed:
      return plan_deepspeed(place, found, plan, error);
    case Launcher::kSrun:
      return plan_srun(place, found, plan, error);
    case Launcher::kMpirun:
      return plan_mpirun(place, found, plan, error);
    case Launcher::kApptainer:
    case Launcher::kSingularity:
      return plan_apptainer(place, found, plan, error);
    case Launcher::kEnroot:
      return plan_enroot(place, found, plan, error);
    default:
      return true;  // its ranks are its children, with its environment; accelerate writes .deepspeed_env
                    // itself
  }
}

bool starts_ranks_of_a_node(Launcher launcher) {
  return launcher == Launcher::kTorchrun || launcher == Launcher::kAccelerate ||
         launcher == Launcher::kDeepSpeed || launcher == Launcher::kPython;
}

}  // namespace

void agree_on_folder(const Place& place, Plan* plan) {
  if (carried_value(place, *plan, "DSHANG_DIR").empty()) plan->environment["DSHANG_DIR"] = place.new_folder;
}

std::optional<Plan> make_plan(const Place& place, Words command, std::string* error) {
  if (command.empty() || command[0].empty()) {
    *error = "no command; for example: dshang run -- deepspeed train.py";
    return std::nullopt;
  }
  if (place.library.find_first_of(" :") != std::string::npos) {
    *error =
        "a library in a folder with a blank or colon in its name cannot be preloaded (" + place.library + ")";
    return std::nullopt;
  }
  Plan plan;
  plan.command = std::move(command);
  plan.way = "the environment";
  plan.environment[kPreload] = in_front(preload_of(place), carried_value(place, plan, kPreload));
  Found found = first_launcher(plan.command);
  if (found.launcher == Launcher::kNone) {
    plan.remarks.push_back(
        base_name(plan.command[0]) +
        " is no launcher that is known here: it gets the environment, which a launcher inside "
        "may not pass to other nodes; there `dshang run --` stands before the launcher itself");
  }
  while (found.launcher != Launcher::kNone) {
    std::size_t words = plan.command.size();
    if (!plan_one(place, found, &plan, error)) return std::nullopt;
    if (starts_ranks_of_a_node(found.launcher)) break;  // what follows is the program and its own words
    found = next_launcher(plan.command, found.options - 1 + plan.command.size() - words);
  }
  return plan;
}

}  // namespace dshang::launch
