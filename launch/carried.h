// What has to reach every rank: LD_PRELOAD and the DSHANG_* variables; and the lists in which launchers take
// them.
#pragma once

#include <string>
#include <vector>

#include "launch/plan.h"

namespace dshang::launch {

inline constexpr const char* kPreload = "LD_PRELOAD";

// What is preloaded: the library, and behind it the one for dlsym(), where that is asked for.
std::string preload_of(const Place& place);

// LD_PRELOAD with `ours` (as preload_of gives it) in front of what is there.  In front, because a wrapper
// must see the calls before another tool changes them; others of the same names are left out, since two would
// record each call twice.  Separated by colons: what adds quotes to values with blanks (DeepSpeed) makes them
// part of the path.
std::string in_front(const std::string& ours, const std::string& preloaded);

// Names of what is carried, LD_PRELOAD first; values are those of `plan.environment`, else of the place.
std::vector<std::string> carried_names(const Place& place, const Plan& plan);
std::string carried_value(const Place& place, const Plan& plan, const std::string& name);

// A list of NAME and NAME=VALUE (srun's --export, Open MPI's mca_base_env_list) with all that is carried in
// it; a preload that it sets stays, behind the library.
std::string with_carried(const std::string& list, char separator, const Place& place, const Plan& plan);

}  // namespace dshang::launch
