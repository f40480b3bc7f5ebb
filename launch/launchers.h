// One function a launcher: adds to the plan what this one needs.  `found` is its place in plan->command,
// which may grow; false: `error` says what is wrong.
#pragma once

#include "launch/plan.h"
#include "launch/words.h"

namespace dshang::launch {

bool plan_deepspeed(const Place& place, const Found& found, Plan* plan, std::string* error);
bool plan_srun(const Place& place, const Found& found, Plan* plan, std::string* error);
bool plan_mpirun(const Place& place, const Found& found, Plan* plan, std::string* error);
bool plan_apptainer(const Place& place, const Found& found, Plan* plan, std::string* error);
bool plan_enroot(const Place& place, const Found& found, Plan* plan, std::string* error);

// The nodes of a job must agree on one folder for its files, and their clocks differ.
void agree_on_folder(const Place& place, Plan* plan);

}  // namespace dshang::launch
