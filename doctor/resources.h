// What deepspeed's launcher starts, from hostfile, --include, --exclude, --num_nodes and --num_gpus.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "doctor/facts.h"

namespace dshang::doctor {

struct Resources {
  std::vector<std::pair<std::string, std::set<int>>> hosts;  // with the slots that are used, in order
  bool of_variable = false;                                  // CUDA_VISIBLE_DEVICES tells the slots
  std::string refused;                                       // why nothing is started; "" it is
};

// Nothing where another launcher starts the ranks, or where a host's slots are not known.
std::optional<Resources> resources_of(const Facts& facts);

// The value of the first of these options of the launcher that is given; null: none is.
const std::string* launch_option(const Launch& launch, std::initializer_list<const char*> names);
std::optional<int> whole_number(const std::string* text);
// "0,3" of --include or CUDA_VISIBLE_DEVICES; nothing where an item is no number.
std::optional<std::set<int>> device_numbers(const std::string& list);

}  // namespace dshang::doctor
